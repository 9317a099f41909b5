"""The best values of a sweep."""

from itertools import product

import pytest
import yaml
from measured import described, runs_file, write_metrics
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.results.at_hand.best import best
from fedstage.settings.experiments import Scale
from fedstage.storage.files import save_json

RATES = [0.01, 0.1, 1.0]
AXES = {"method": ["fedavg", "feddf"], "partition.alpha": [0.1, 1.0], "client.learning_rate": RATES}
#: The best rate, by method and alpha.
BEST = {
    ("fedavg", 0.1): 0.1,
    ("fedavg", 1.0): 0.1,
    ("feddf", 0.1): 0.1,
    ("feddf", 1.0): 1.0,
}


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A function that writes the runs of a sweep, by its axes and the accuracy of each point."""
    monkeypatch.chdir(tmp_path)

    def write(axes, accuracy, role="validation", **head):
        length = {"rounds": 2, "role": role}
        candidates = [{"parts": [{"length": length, "federated": federated()}]}]
        runs = []
        for number, values in enumerate(product(*axes.values(), [7, 8])):
            point = dict(zip([*axes, "seed"], values, strict=True))
            path = f"results/training/{number}.parquet"
            # The best round is not the last, and deviates by the same over seeds.
            last = accuracy(point) + point["seed"] - 7.5
            write_metrics(tmp_path / path, [99.0 - last, last], role=[role] * 2)
            runs.append(described(point, path, candidates=candidates))
        path = tmp_path / "results/descriptions/rates/mini.runs.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {"rows": [*axes], "labels": {"fedavg": "FedAvg"}}
        save_json(path, runs_file(runs, **rows | head))
        return path

    return write


def is_best(point):
    return point["client.learning_rate"] == BEST[point["method"], point["partition.alpha"]]


def by_table(point):
    return 60.0 if is_best(point) else 50.0


def entries(text):
    """Return what an experiment reads from the text, as pairs of `at` and `settings`."""
    read = Scale.model_validate(yaml.safe_load(text)).cells
    return [(cell.at, cell.settings) for cell in read]


def test_cells_of_the_same_best_value_are_one_entry_if_they_are_all_of_their_values(sweep):
    sweep(AXES, by_table)
    text = best("rates/mini")
    assert entries(text) == [
        (
            {"method": "fedavg", "partition.alpha": [0.1, 1.0]},
            {"client": {"learning_rate": 0.1}},
        ),
        ({"method": "feddf", "partition.alpha": 0.1}, {"client": {"learning_rate": 0.1}}),
        ({"method": "feddf", "partition.alpha": 1.0}, {"client": {"learning_rate": 1.0}}),
    ]
    assert "  # FedAvg, α = 0.1: 60.00 ± 0.71, seeds: 2\n" in text
    (edge,) = [line for line in text.splitlines() if "widen" in line]
    assert edge == (
        "  # client.learning_rate: the best of 0.01, 0.1, 1 is the largest: widen the grid"
    )


@pytest.mark.parametrize("other", [0.1, 1.0])
def test_entries_give_each_cell_its_best_value(sweep, other):
    for method, alpha in BEST:
        table = BEST | {(method, alpha): other}
        sweep(AXES, lambda point, table=table: 50 + 9 * (
            point["client.learning_rate"] == table[point["method"], point["partition.alpha"]]
        ))  # fmt: skip
        found = {}
        for at, settings in entries(best("rates/mini")):
            values = [value if isinstance(value, list) else [value] for value in at.values()]
            for cell in product(*values):
                assert cell not in found
                found[cell] = settings["client"]["learning_rate"]
        assert found == table


def test_several_settings_are_chosen_together(sweep):
    axes = {
        "method": ["fedadam"],
        "client.epochs": [1, 2],
        "aggregation.server_optimizer.learning_rate": [0.03, 0.1, 0.3],
    }
    rate = "aggregation.server_optimizer.learning_rate"
    sweep(axes, lambda point: 50.0 + (point["client.epochs"] == 2) * (point[rate] == 0.1))
    text = best("rates/mini")
    assert entries(text) == [
        (
            {"method": "fedadam"},
            {"client": {"epochs": 2}, "aggregation": {"server_optimizer": {"learning_rate": 0.1}}},
        )
    ]
    assert "client.epochs: the best of 1, 2 is the largest" in text
    assert f"{rate}: the best" not in text


@pytest.mark.parametrize("role", ["test", "test_own"])
def test_nothing_is_chosen_on_test_samples(sweep, role):
    sweep(AXES, by_table, role)
    with pytest.raises(FedstageError) as error:
        best("rates/mini")
    assert str(error.value) == (
        f"rates/mini: role = '{role}': choose on validation samples only; write "
        "base: {role: validation, validation: 0.1}"
    )


def test_the_command_prints_yaml(sweep, capsys):
    sweep(AXES, by_table)
    assert main(["best", "rates/mini", "--over", "client.learning_rate"]) == 0
    assert capsys.readouterr().out == f"{best('rates/mini')}\n"
    assert main(["best", "nothing"]) == 1
    assert capsys.readouterr().err.startswith("fedstage best: nothing: no results")
