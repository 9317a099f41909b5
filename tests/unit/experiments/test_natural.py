import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedstage.data.folder import VARIABLE
from fedstage.errors import FedstageError
from fedstage.experiments.natural import with_clients

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


def test_clients_that_are_given_stay_and_nothing_is_read(tmp_path):
    given = settings(TABLE, clients=5)
    assert with_clients("here", given, tmp_path) == given


@pytest.mark.parametrize("partition", ["iid", {"name": "iid"}, None])
def test_other_partitions_are_left_as_they_are(folder, partition):
    other = settings(TABLE, partition=partition)
    assert with_clients("here", other, folder) == other


def test_the_folder_of_the_environment_is_the_default(folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(folder))
    assert with_clients("here", settings(TABLE), None)["clients"] == 2


def test_a_file_that_has_changed_is_counted_again(folder):
    assert with_clients("here", settings(TABLE), folder)["clients"] == 2
    with (folder / "mine/train.csv").open("a") as file:
        file.write("4,b,p\n")
    assert with_clients("here", settings(TABLE), folder)["clients"] == 3


@pytest.mark.parametrize(
    ("name", "centres"), [("heart_disease", 4), ("isic2019", 6), ("camelyon16", 2)]
)
def test_centres_are_known_without_a_file(name, centres):
    assert with_clients("here", settings({"name": name}), None)["clients"] == centres


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
        (TABLE | {"client_column": "who"}, "data.client_column = 'who': no such column"),
        (TABLE | {"folder": "yours"}, "yours: no such folder"),
        ({"name": "sent140"}, "clients: missing; how many data = sent140 has"),
    ],
)
def test_clients_that_cannot_be_counted(folder, data, told):
    with pytest.raises(FedstageError) as caught:
        with_clients("here", settings(data), folder)
    assert str(caught.value).startswith("here: clients: missing")
    assert told in str(caught.value)


def test_clients_without_a_data_folder(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(FedstageError, match="no data folder to count them in; set data_folder"):
        with_clients("here", settings(TABLE), None)
