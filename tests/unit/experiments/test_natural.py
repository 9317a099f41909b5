from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedstage.errors import FedstageError
from fedstage.experiments.run_checks import with_clients
from fedstage.plan.data_files import data_file
from fedstage.settings.data import DataOption
from fedstage.settings.validation import validate
from fedstage.storage.files import save_json
from fedstage.storage.raw_files import VARIABLE

TABLE = {"name": "table", "folder": "mine", "client_column": "by"}
IMAGES = {"name": "parquet", "folder": "mine", "client_column": "by"}


def settings(data, **changes):
    return {"data": data, "partition": {"name": "natural"}} | changes


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.csv").write_text("x,label,by\n1,a,n\n2,b,m\n3,a,n\n")
    (tmp_path / "mine/test.csv").write_text("x,label,by\n1,a,o\n")
    return tmp_path


def test_clients_are_counted_where_none_are_given(folder):
    assert with_clients("here", settings(TABLE), folder)["clients"] == 2


def test_a_file_that_has_changed_is_counted_again(folder):
    assert with_clients("here", settings(TABLE), folder)["clients"] == 2
    with (folder / "mine/train.csv").open("a") as file:
        file.write("4,b,p\n")
    assert with_clients("here", settings(TABLE), folder)["clients"] == 3


def test_clients_of_images_are_counted_in_their_training_files(tmp_path):

    (tmp_path / "mine").mkdir()
    pq.write_table(pa.table({"by": [3, 1, 3]}), tmp_path / "mine/train-0.parquet")
    pq.write_table(pa.table({"by": [7]}), tmp_path / "mine/train-1.parquet")
    pq.write_table(pa.table({"by": [9]}), tmp_path / "mine/test.parquet")
    assert with_clients("here", settings(IMAGES), tmp_path)["clients"] == 3
    divided = settings(IMAGES | {"division": [7, 1, 2]})
    assert with_clients("here", divided, tmp_path)["clients"] == 4


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (
            TABLE | {"client_column": "who"},
            "data.client_column = 'who': no such column",
        ),
        (TABLE | {"folder": "yours"}, "not given, and cannot be counted: "),
        (TABLE | {"folder": "yours"}, "yours: no such folder"),
        ({"name": "sent140"}, "clients: not given; how many data = sent140 has"),
    ],
)
def test_clients_that_cannot_be_counted(folder, data, told):
    with pytest.raises(FedstageError) as caught:
        with_clients("here", settings(data), folder)
    assert str(caught.value).startswith("here: clients: not given")
    assert told in str(caught.value)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The description of a data set of three clients, as the stage `dataset` leaves it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    info = Path(data_file(validate(DataOption, {"data": TABLE}, "").data, "info"))
    info.parent.mkdir(parents=True)
    save_json(info, {"client_names": ["m", "n", "o"]})
    return info


def test_without_files_the_clients_of_the_data_set_that_was_made_count(made):
    assert with_clients("here", settings(TABLE), None)["clients"] == 3
    assert with_clients("here", settings(TABLE), Path("elsewhere"))["clients"] == 3
