"""What Fed-ET states (Sections 3.2 and 4, Appendices B and C), beside its experiments."""

import pytest
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.experiments.published_rows import load_rows
from fedstage.protocol.groups import head_of

#: tau, b and eta of clients and of the server, and lambda: the best values of Appendix C. tau_s is
#: printed as 128, which is in the grid of b_s; the table has both.
STATED = {
    "fedet_table2": ((30, 64, 0.1), (50, 64, 0.005), 0.05),
    "fedet_table2_text": ((15, 5, 0.0003), (10, 5, 0.001), 0.5),
}
#: Table 6: the server's model, and those of clients.
MODELS = {
    "fedet_table2": ["vgg19", "resnet18", "resnet8_wide", "cnn_fed_et"],
    "fedet_table2_text": ["bert", "bert", "lstm"],
}
#: Experiments by the printed table that they stand for, and its metric.
TABLES = {
    "table2": ("top1_accuracy", ["fedet_table2", "fedet_table2_text"]),
    "table3": ("params_to_reach", ["fedet_table3", "fedet_table3_text"]),
    "table4": ("top1_accuracy", ["fedet_table4", "fedet_table4_text"]),
    "table5": ("top1_accuracy", ["fedet_table5"]),
    "table6": ("params", ["fedet_table6"]),
}


@pytest.fixture(scope="module")
def catalogue():
    return experiments()[0]


def runs_of(catalogue, name, method="fedet"):
    return [run for run in catalogue.runs[name, "paper"] if run.axes["method"] == method]


def lengths(training):
    return training.steps, training.batch_size, training.learning_rate


@pytest.mark.parametrize("name", STATED)
def test_rates_and_lengths_are_the_best_of_appendix_c(catalogue, name):
    client, server, diversity = STATED[name]
    for run in catalogue.runs[name, "paper"]:
        assert (run.recipe.participants, run.recipe.participation) == (10, "by_samples")
        assert lengths(run.recipe.client) == client
        assert (run.recipe.client.momentum, run.recipe.client.optimiser) == (0.0, "sgd")
    for run in runs_of(catalogue, name):
        assert lengths(run.recipe.server) == server
        assert run.recipe.distillation.diversity == diversity
    if name == "fedet_table2":
        printed = runs_of(catalogue, name, "fedet_as_printed")
        assert {run.recipe.server.steps for run in printed} == {128}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_those_of_table_6_with_one_head(catalogue, name):
    for run in runs_of(catalogue, name):
        models = run.recipe.architectures
        assert [model.name for model in models] == MODELS[name]
        assert {(head_of(model).hidden, head_of(model).width) for model in models} == {(128, 128)}
        assert {getattr(model, "norm", "none") for model in models} == {"none"}
    for method in ("fedavg", "fedprox", "scaffold"):
        for run in runs_of(catalogue, name, method):
            assert (run.recipe.model, run.recipe.architectures) == (models[0], ())


def test_images_are_divided_over_100_clients(catalogue):
    found = set()
    for run in catalogue.runs["fedet_table2", "paper"]:
        recipe = run.recipe
        found.add((recipe.data.name, recipe.partition.alpha))
        assert recipe.data.division == (7, 1, 2)
        assert (recipe.clients, recipe.partition.name) == (100, "dirichlet")
    assert found == {(data, alpha) for data in ("cifar10", "cifar100") for alpha in (0.1, 0.5)}


def test_texts_start_from_published_weights(catalogue):
    for name in ("fedet_table2_text", "fedet_table3_text", "fedet_table4_text"):
        for run in runs_of(catalogue, name):
            files = [model.weights.file for model in run.recipe.architectures[:2]]
            assert files == ["bert_uncased_L-4_H-256_A-4.bin", "bert_uncased_L-2_H-128_A-2.bin"]
            sizes = [(one.layers, one.width, one.heads) for one in run.recipe.architectures[:2]]
            assert sizes == [(4, 256, 4), (2, 128, 2)]
        assert all(
            model.weights is None
            for run in catalogue.runs[name, "mini"]
            for model in (run.recipe.model, *run.recipe.architectures[:2])
        )


def test_accuracies_to_reach_are_those_of_section_4(catalogue):
    reach = {name: catalogue.experiments[name].communication.reach for name in TABLES["table3"][1]}
    images = reach["fedet_table3"]["data"]
    assert (images["cifar10"], images["cifar100"], reach["fedet_table3_text"]) == (70, 30, 70)


@pytest.mark.parametrize("table", TABLES)
def test_each_printed_number_has_its_cell(catalogue, table):
    metric, names = TABLES[table]
    found = set()
    for name in names:
        part = catalogue.published_communication if table == "table6" else catalogue.published
        of = [run.axes for run in catalogue.runs[name, "paper"]]
        numbers = part[name, "paper"].numbers
        for axes, number in zip(of, numbers, strict=True):
            # One reading of a printed row: the server's steps, and the model that is scored.
            readings = ("fedet_as_printed", "feddf_clients", "dsfl_clients")
            if number is not None and axes["method"] not in readings:
                found.add((str({**axes, "seed": None}), number["value"]))
    rows = load_rows(WORKFLOW / "papers/fedet")
    printed = [row.value for row in rows if (row.table, row.metric) == (table, metric)]
    assert sorted(value for _, value in found) == sorted(printed)
