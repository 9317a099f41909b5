import pytest

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
