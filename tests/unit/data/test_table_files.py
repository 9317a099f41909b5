import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedstage.data import text_files
from fedstage.data.table_files import read_table
from fedstage.errors import FedstageError


@pytest.mark.parametrize("value", ['"x', '"x""', '"x""y', '"', '"x\n'])
def test_an_open_quote_is_refused(tmp_path, value):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,{value}\n2,x\n", encoding="utf-8-sig")
    with pytest.raises(FedstageError, match=r"a.csv: row 2: a quote that is not closed"):
        read_table(path)


def test_an_open_quote_beyond_the_header_has_its_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2\n1,2,"x\n')
    with pytest.raises(FedstageError, match=r"a.csv: row 3: a quote"):
        read_table(path)


@pytest.mark.parametrize("rows", range(1, 7))
@pytest.mark.parametrize("quote", ["", '"'])
def test_zeros_before_a_number_are_seen_in_any_row(tmp_path, rows, quote):
    path = tmp_path / "a.csv"
    for place in range(rows):
        cells = ["01" if row == place else "1" for row in range(rows)]
        path.write_text("a,b\n" + "".join(f"{quote}{cell}{quote},2\n" for cell in cells))
        assert read_table(path).to_pydict() == {"a": cells, "b": [2.0] * rows}


MISSING = ["", "NA", "?", "null"]
NUMBERS = ["1", "5", "6", "-2.5", "1e3", "0", "0.25", "+4", " 7 ", "1.7976931348623157e+308"]
TEXTS = ["x", "01", "-00.5", "1 2", "10:05", "a\nb"]
CELLS = st.sampled_from([(cell, q) for cell in MISSING + NUMBERS + TEXTS for q in (False, True)])


def column_of(cells):
    """Return the values of cells, each with whether it is quoted, by the rule in words."""
    texts = [None if cell.strip() == "" or (not quoted and cell in MISSING) else cell
             for cell, quoted in cells]  # fmt: skip
    if not {*texts} <= {None, *NUMBERS}:
        return texts
    return [math.nan if text is None else float(text) for text in texts]


@example([("-00.5", False)], 0, 60)
@given(st.lists(CELLS, max_size=4), st.integers(0, 60), st.sampled_from([60, 2**20]))
def test_a_column_is_numbers_if_all_cells_are_wherever_the_others_stand(odd, before, block):
    cells = [*[("5", False)] * before, *odd, *[("6", False)] * 40]
    cells = [(cell, quoted or "\n" in cell) for cell, quoted in cells]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK", block)
        path = Path(folder, "a.csv")
        rows = (f'{n},"{cell}"' if quoted else f"{n},{cell}"
                for n, (cell, quoted) in enumerate(cells))  # fmt: skip
        path.write_text("n,a\n" + "\n".join(rows), newline="")
        read = read_table(path).to_pydict()
    expected = column_of(cells)
    if any(isinstance(value, float) for value in expected):
        read["a"] = [math.nan if value is None else value for value in read["a"]]
    assert read["n"] == [*range(len(cells))]
    assert repr(read["a"]) == repr(expected)
