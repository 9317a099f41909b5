"""Every number of FedEED's and FedSDD's tables has its cell in an experiment."""

from pathlib import Path

import pytest

from fedstage.catalogue import load_catalogue
from fedstage.published.rows import load_rows

WORKFLOW = Path(__file__).parents[3] / "workflow"
PAPERS = ("fedeed", "fedsdd")


@pytest.fixture(scope="module")
def catalogue():
    config = {"targets": ["fedsdd_table2/paper"]}
    return load_catalogue(config, WORKFLOW)


def tables(catalogue):
    """The tables of published numbers that experiments at paper scale stand for."""
    return {
        name: experiment.table.published
        for name, experiment in catalogue.experiments.items()
        if name.startswith(PAPERS) and experiment.table.published is not None
    }


def test_each_number_has_its_cell_at_the_papers_scale(catalogue):
    for name, published in tables(catalogue).items():
        rows = load_rows(WORKFLOW / f"published/{published.paper}.csv")
        expected = [
            row.value
            for row in rows
            if (row.table, row.metric) == (published.table, published.metric)
            and published.where.items() <= row.keys.items()
        ]
        runs = catalogue.runs[name, "paper"]
        numbers = catalogue.published[name, "paper"].numbers
        cells = {
            str({**run.axes, "seed": None}): number
            for run, number in zip(runs, numbers, strict=True)
        }
        # Of FedAvg the paper has the whole round's seconds, of others what they add to it.
        without = 3 if name == "fedsdd_table3" else 0
        found = [number["value"] for number in cells.values() if number is not None]
        assert len(cells) - len(found) == without, name
        assert sorted(found) == sorted(expected), name


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_of_accuracies_is_an_experiment(catalogue, paper):
    rows = load_rows(WORKFLOW / f"published/{paper}.csv")
    accuracies = {row.table for row in rows if row.metric == "top1_accuracy"}
    stated = {one.table for one in tables(catalogue).values() if one.paper == paper}
    assert accuracies <= stated


@pytest.mark.parametrize("paper", PAPERS)
def test_every_experiment_has_three_scales(catalogue, paper):
    for name, experiment in catalogue.experiments.items():
        if name.startswith(paper) and experiment.table.published is not None:
            assert {"smoke", "mini", "paper"} <= set(experiment.scales), name


def test_at_paper_scale_the_settings_are_the_papers(catalogue):
    """Hyperparameters that both papers state in section 6.1 (4.1)."""
    for run in catalogue.runs["fedsdd_table2", "paper"]:
        line = run.line
        assert (line.clients, line.participants, run.length.rounds) == (20, 8, 100)
        client = line.client
        assert (client.epochs, client.batch_size, client.learning_rate) == (40, 64, 0.8)
        if line.server and line.global_trainer:
            server = line.server
            assert (server.steps, server.batch_size, server.learning_rate) == (5000, 256, 0.1)
            assert server.temperature == 4.0
            expected = {"cifar10": "cifar100", "cifar100": "parquet"}
            assert line.public.name == expected[line.data.name]


# --- FENS, Fed-Heart-Disease ----------------------------------------------------------------------

RELEASED = {
    "fedavg": 79.4, "fedprox": 79.2, "fedadam": 78.1, "fedyogi": 78.5, "scaffold_as_released": 79.2,
}  # fmt: skip


def test_test_rows_standardised_as_released_stand_beside_what_is_published(catalogue):
    runs = catalogue.runs["fens_table14", "paper"]
    numbers = catalogue.published["fens_table14", "paper"].numbers
    beside = {
        (run.axes["method"], run.axes["role"]): number and number["value"]
        for run, number in zip(runs, numbers, strict=True)
    }
    expected = {(method, "test"): pytest.approx(value) for method, value in RELEASED.items()}
    assert {place: value for place, value in beside.items() if value is not None} == expected
    assert len(beside) == 2 * (len(RELEASED) + 1)


def test_both_standardisations_are_of_the_same_lines(catalogue):
    lines = {(run.axes["method"], run.line) for run in catalogue.runs["fens_table14", "paper"]}
    assert len(lines) == 5 * (len(RELEASED) + 1)  # seeds


def test_settings_of_the_benchmark(catalogue):
    rates = {}
    for run in catalogue.runs["fens_table14", "paper"]:
        line, client = run.line, run.line.client
        assert (line.clients, line.participants, run.length.rounds) == (4, 4, 150)
        assert (client.steps, client.batch_size, client.batches) == (100, 4, "continued")
        assert line.aggregation.weights == "samples"
        optimiser = line.aggregation.server_optimizer
        if optimiser.name != "average":
            moments = (optimiser.beta1, optimiser.beta2, optimiser.epsilon, optimiser.v_start)
            assert moments == (0.9, 0.999, 1e-8, "zero")
            assert {optimiser.bias_correction, optimiser.epsilon_in_root} == {False}
        server = getattr(optimiser, "learning_rate", 1.0)
        rates[run.axes["method"]] = (client.learning_rate, server)
    slow = dict.fromkeys(("fedavg", "fedprox", "scaffold", "scaffold_as_released"), (0.001, 1.0))
    assert rates == slow | {"fedadam": (0.01, 0.01), "fedyogi": (0.003162, 0.01)}
