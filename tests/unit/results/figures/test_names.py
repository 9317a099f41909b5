import pandas as pd
import pytest
from measured import described
from tests.shared.settings import one_shot

from fedstage.experiments.runs_file import ExperimentRun
from fedstage.results.figures.names import Names, name_partitions, read_names
from fedstage.storage.files import save_json

CENTRES, CLASSES = ("Basel", "Bern"), ("ill", "well")
TABLE = {"name": "table", "folder": "mine", "client_column": "centre"}


def run(info, partition="natural"):
    recipe = one_shot() | {"data": TABLE, "clients": 2, "partition": partition, "model": "mlp"}
    parts = [{"length": {"rounds": 2}, "local": recipe}]
    return ExperimentRun.model_validate(
        described({"seed": 0}, info=info, candidates=[{"parts": parts}])
    )


@pytest.fixture
def info(tmp_path):
    def write(name="info", **names):
        path = tmp_path / f"{name}.json"
        save_json(path, {"client_names": CENTRES, "class_names": CLASSES} | names)
        return str(path)

    return write


HISTOGRAM = pd.DataFrame({"client": [0, 1, 1], "label": [1, 0, 1], "samples": [5, 6, 7]})


def test_names_are_those_of_the_data(info):
    assert read_names([run(info())]) == Names(CENTRES, CLASSES)


def test_the_table_beside_the_figure_has_numbers_and_names():
    table = name_partitions({"x": HISTOGRAM}, Names(CENTRES, CLASSES))
    assert table.to_dict("records")[0] == {
        "partition": "x", "client": 0, "client_name": "Basel", "label": 1, "class_name": "well",
        "samples": 5,
    }  # fmt: skip
    assert list(name_partitions({"": HISTOGRAM}, Names())["client_name"]) == ["0", "1", "1"]
