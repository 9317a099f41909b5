import pandas as pd
import pytest
from measured import SETTINGS, described

from fedstage.results.figures.names import LONGEST, Names, name_partitions, read_names, shorten
from fedstage.results.figures.partition import draw_partition
from fedstage.results.runs_file import ExperimentRun
from fedstage.storage.files import save_json

CENTRES, CLASSES = ("Basel", "Bern"), ("ill", "well")
TABLE = {"name": "table", "folder": "mine", "client_column": "centre"}


def run(info, partition="natural"):
    recipe = SETTINGS | {"data": TABLE, "clients": 2, "partition": partition, "model": "mlp"}
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


def ticks(axes):
    axes.figure.canvas.draw()
    return [[one.get_text() for one in axis.get_ticklabels()] for axis in (axes.xaxis, axes.yaxis)]


def test_names_are_those_of_the_data(info):
    assert read_names([run(info())]) == Names(CENTRES, CLASSES)


def test_clients_of_another_partition_have_numbers(info):
    assert read_names([run(info(), "iid")]) == Names(None, CLASSES)
    assert read_names([run(info()), run(info(), "iid")]) == Names(None, CLASSES)


def test_data_sets_with_different_names_have_numbers(info):
    other = info("other", class_names=["a", "b"])
    assert read_names([run(info()), run(other)]) == Names(CENTRES, None)


def test_runs_without_an_info_have_numbers():
    assert read_names([run(None)]) == Names(None, None)


def test_the_figure_shows_names():
    (axes,) = draw_partition({"": HISTOGRAM}, Names(CENTRES, CLASSES)).axes
    assert ticks(axes) == [list(CENTRES), list(CLASSES)]


def test_the_figure_shows_numbers_without_names():
    (axes,) = draw_partition({"": HISTOGRAM}).axes
    assert ticks(axes) == [["0", "1"], ["0", "1"]]


def test_the_server_s_own_samples_are_named(info):
    (axes,) = draw_partition({"": HISTOGRAM}, Names(("Basel",), CLASSES)).axes
    assert ticks(axes)[0] == ["Basel", "server"]


def test_long_names_are_cut():
    assert shorten("a" * LONGEST) == "a" * LONGEST
    assert shorten("a" * 40) == "a" * (LONGEST - 1) + "\N{HORIZONTAL ELLIPSIS}"


def test_the_table_beside_the_figure_has_numbers_and_names():
    table = name_partitions({"x": HISTOGRAM}, Names(CENTRES, CLASSES))
    assert table.to_dict("records")[0] == {
        "partition": "x", "client": 0, "client_name": "Basel", "label": 1, "class_name": "well",
        "samples": 5,
    }  # fmt: skip
    assert list(name_partitions({"": HISTOGRAM}, Names())["client_name"]) == ["0", "1", "1"]
