"""Every number of FedEED's, FedSDD's and FENS's tables has its cell in an experiment."""

from collections import defaultdict

import pytest
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.training_folder import training_id
from fedstage.results.published.rows import load_rows
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

PAPERS = ("fedeed", "fedsdd")


@pytest.fixture(scope="module")
def catalogue():
    return experiments("fedsdd_table2/paper")[0]


def tables(catalogue):
    """The tables of published numbers that experiments at paper scale stand for."""
    return {
        name: experiment.table.published
        for name, experiment in catalogue.experiments.items()
        if name.startswith(PAPERS)
        and experiment.table.published is not None
        # The numbers of Table 2 once more, beside each of two partitions.
        and name != "fedsdd_partitions"
    }


def test_each_number_has_its_cell_at_the_papers_scale(catalogue):
    for name, published in tables(catalogue).items():
        rows = load_rows(WORKFLOW / f"papers/{published.paper}")
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


def test_at_paper_scale_the_settings_are_the_papers(catalogue):
    """Hyperparameters that both papers state in section 6.1 (4.1)."""
    for run in catalogue.runs["fedsdd_table2", "paper"]:
        recipe = run.recipe
        assert (recipe.clients, recipe.participants, run.length.rounds) == (20, 8, 100)
        client = recipe.client
        assert (client.epochs, client.batch_size, client.learning_rate) == (40, 64, 0.8)
        if recipe.server and recipe.global_trainer:
            server = recipe.server
            assert (server.steps, server.batch_size, server.learning_rate) == (5000, 256, 0.1)
            assert server.temperature == 4.0
            expected = {"cifar10": "cifar100", "cifar100": "parquet"}
            assert recipe.public.name == expected[recipe.data.name]


# --- FENS -----------------------------------------------------------------------------------------

#: What a score is called here and there.
SCORES = ("top1_accuracy", "accuracy", "balanced_accuracy", "auc")
FENS_CELLS = {
    1: 63, 2: 28, 3: 6, 4: 12, 7: 12, 9: 18, 10: 21, 11: 45, 12: 6, 13: 5, 14: 6, 15: 7, 16: 6,
    17: 9,
}  # fmt: skip


def fens_tables(catalogue):
    return {
        one.table.published.table: name
        for name, one in catalogue.experiments.items()
        if one.table.published is not None and one.table.published.paper == "fens"
    }


def test_each_score_of_fens_has_its_cell(catalogue):
    rows = [row for row in load_rows(WORKFLOW / "papers/fens") if row.metric in SCORES]
    names = fens_tables(catalogue)
    assert {row.table for row in rows} == set(names)
    assert len(names) == len(FENS_CELLS) + 1  # and what the text says of AG News
    for table, name in names.items():
        numbers = catalogue.published[name, "paper"].numbers
        runs = catalogue.runs[name, "paper"]
        cells = {
            str({**run.axes, "seed": None}): number["value"]
            for run, number in zip(runs, numbers, strict=True)
            if number is not None
        }
        expected = [row.value for row in rows if row.table == table]
        assert sorted(cells.values()) == sorted(expected), name
        if table.startswith("table"):
            assert len(cells) == FENS_CELLS[int(table.removeprefix("table"))]


def test_tables_of_fens_read_the_same_models_of_clients(catalogue):
    """For one partition of CIFAR-10, whatever is made of them."""
    runs = [
        run
        for number in (1, 2, 3, 4, 7, 9, 10, 11)
        for run in catalogue.runs[f"fens_table{number}", "paper"]
        if isinstance(run.recipe, OneShotRecipe)
        and (run.recipe.data.name, run.recipe.clients, run.recipe.partition.alpha)
        == ("cifar10", 20, 0.1)
    ]
    every = {local_recipe(run.recipe) for run in runs}
    recipes = {recipe for recipe in every if recipe.start is None}
    assert len(every) == len(recipes) + 1  # FedKD after three rounds of averaging
    trained = sorted((recipe.model.width, recipe.aggregator_fraction) for recipe in recipes)
    assert trained == [(28, 0.1), (128, 0.0), (128, 0.1)]
    shared = catalogue.runs["fens_shared_models", "paper"]
    models = defaultdict(set)
    for run in (run for run in shared if run.axes["partition.alpha"] == 0.1):
        models[local_recipe(run.recipe)].add(run.axes["method"])
    assert models.keys() <= recipes
    names = ["fedens", "fedkd", "fedet_os"]
    assert sorted(map(sorted, models.values())) == sorted(
        [sorted(names), sorted(["fens", "fens_int8", *(f"{name}_shared" for name in names)])]
    )
    federated = defaultdict(set)
    for number in (4, 10, 11):
        for run in catalogue.runs[f"fens_table{number}", "paper"]:
            if isinstance(run.recipe, Recipe) and run.recipe.data.name == "cifar10":
                federated[run.axes["method"]].add(training_id(run.recipe))
    assert {len(ids) for ids in federated.values()} == {3}  # partitions
