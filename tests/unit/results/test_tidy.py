"""The tidy file: what is written is read, and the last round of each run."""

import pandas as pd
import pytest
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.errors import FedstageError
from fedstage.results.tidy import (
    Header,
    Tidy,
    by_round,
    cell_numbers,
    last_rounds,
    read_tidy,
    typed,
    write_tidy,
)
from fedstage.storage.tables import save_table


def test_what_is_written_is_read(tidy, tmp_path):
    write_tidy(tmp_path / "s.parquet", tidy)
    found = read_tidy(tmp_path / "s.parquet")
    assert found.header == tidy.header
    pd.testing.assert_frame_equal(found.frame, tidy.frame, check_dtype=False)


def test_pandas_alone_reads_rows_and_header(tidy, tmp_path):
    write_tidy(tmp_path / "s.parquet", tidy)
    frame = pd.read_parquet(tmp_path / "s.parquet")
    assert frame.attrs["title"] == "Tiny"
    assert Header.model_validate(frame.attrs) == tidy.header
    assert len(frame) == len(tidy.frame)


def test_constant_columns_take_no_space(tidy, tmp_path):
    many = Tidy(pd.concat([tidy.frame] * 200), tidy.header)
    write_tidy(tmp_path / "s.parquet", many)
    bare = many._replace(frame=many.frame.drop(columns=["settings", "source", "machine"]))
    write_tidy(tmp_path / "b.parquet", bare)
    sizes = [(tmp_path / name).stat().st_size for name in ("s.parquet", "b.parquet")]
    assert sizes[0] - sizes[1] < 2000


def test_a_file_without_header_is_refused(tmp_path):
    import pyarrow as pa

    save_table(tmp_path / "t.parquet", {"a": [1]}, pa.schema([("a", pa.int64())]))
    with pytest.raises(FedstageError, match="has no header"):
        read_tidy(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1, None], "Int64"), ([1, 0.5], "Float64"), ([True], "boolean"), ([1, "a"], "string")],
)
def test_axes_have_the_narrowest_type(values, dtype):
    assert str(typed(values).dtype) == dtype


def test_the_last_round_of_each_run_in_the_order_of_the_grid(tidy):
    last = last_rounds(tidy)
    assert set(last["round"]) == {2}
    assert last["top1_accuracy"].tolist() == [v for of in ACCURACIES.values() for v in of]
    assert cell_numbers(tidy.header, last) == [i for i in range(6) for _ in range(3)]


def test_an_axis_takes_the_place_of_a_measure_of_its_name():
    tidy = tidy_of({("fedavg", 0.1): [1.0]}, measures={"participants": lambda *_: 4.0})
    renamed = tidy.frame.rename(columns={"partition.alpha": "participants"})
    cells = [cell.model_copy(update={"axes": {"method": "fedavg", "participants": 0.1}})
             for cell in tidy.header.cells]  # fmt: skip
    header = tidy.header.model_copy(update={"cells": cells, "columns": ["participants"]})
    assert by_round(Tidy(renamed, header))["participants"].tolist() == [0.1, 0.1]


def test_scores_on_other_samples_are_apart(tidy):
    checked = tidy.frame[tidy.frame["seed"] == 0].assign(role="validation")
    both = tidy._replace(frame=pd.concat([tidy.frame, checked]))
    assert len(by_round(both)) == 36
    assert len(by_round(both, role="validation")) == 12
    mixed = [cell.model_copy(update={"role": role}) for cell, role in zip(
        tidy.header.cells, ["test", "validation"] * 3, strict=True)]  # fmt: skip
    header = tidy.header.model_copy(update={"cells": mixed})
    with pytest.raises(FedstageError, match="one role is allowed"):
        by_round(tidy._replace(header=header))
