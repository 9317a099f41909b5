"""Every number of FedEED's, FedSDD's and FENS's tables has its cell in an experiment."""

from collections import defaultdict

import pytest
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.experiments.published_rows import load_rows
from fedstage.plan.training_folder import training_id
from fedstage.plan.unfederated import members_models
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

PAPERS = ("fedeed", "fedsdd")


@pytest.fixture(scope="module")
def catalogue():
    return experiments()[0]


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
        # Of FedAvg the paper has the whole round's seconds, of others what they add to it; it has
        # no rows with cached logits.
        without = 9 if name == "fedsdd_table3" else 0
        found = [number["value"] for number in cells.values() if number is not None]
        assert len(cells) - len(found) == without, name
        assert sorted(found) == sorted(expected), name


#: What both papers state for all tables (FedEED 6.1, FedSDD 4.1), and from FedDF's released code,
#: to which they refer, what clients, students and teachers see.
CLIENTS = {"clients": 20, "participants": 8, "models": 1, "rounds": 100}
CLIENT = {"epochs": 40, "batch_size": 64, "learning_rate": 0.8, "augmentation": "crop_flip"}
SERVER = {
    "steps": 5000, "batch_size": 256, "learning_rate": 0.1, "temperature": 4.0, "optimiser": "sgd",
    "augmentation": "crop_flip", "teacher_images": "augmented",
}  # fmt: skip
PLAIN = {"momentum": 0.0, "weight_decay": 0.0, "schedule": "constant"}
#: The frequencies of communication (FedEED A.2, FedSDD A.1).
FREQUENCIES = {"rare": (25, 160, 20000), "usual": (100, 40, 5000), "often": (400, 10, 1250)}
#: Tables of FedSDD and of FedEED that are about the same runs.
SAME = {2: 4, 4: 5, 5: 1, 6: 2, 7: 6, 8: 7, 9: 8, 10: 9}


def stated(table, axes):
    """The settings of a run: of all runs, of its clients, of the server if it distils."""
    method = axes["method"]
    every, client, server = dict(CLIENTS), CLIENT | PLAIN, SERVER | PLAIN
    every["participants"] = axes.get("participants", 8)
    several = ("fedsdd", "basic", "designated", "undistilled", "aggregated")
    if method.startswith(several) or method.endswith("_k4"):
        every["models"] = axes.get("global_models", 4)
    if table == 3:
        every["rounds"] = 3  # all take equally long
    if table == 7:
        frequency = FREQUENCIES[method.split("_")[1]]
        every["rounds"], client["epochs"], server["steps"] = frequency
    if table == 9:
        _, participants, *models = method.split("_")
        every["participants"] = int(participants)
        every |= {"models": int(models[0].removeprefix("k"))} if models else {}
    if method.endswith("_cached"):
        server["teacher_images"] = "original"
    if method == "feddf_original":  # Table 10, before the settings of the other tables
        client["learning_rate"] = 0.1
        server |= {
            "optimiser": "adam", "learning_rate": 0.001, "temperature": 1.0, "schedule": "cosine",
        }  # fmt: skip
    return every, client, server


def found(settings, names):
    values = {name: getattr(settings, name) for name in names}
    return {name: getattr(value, "name", value) for name, value in values.items()}


@pytest.mark.parametrize("table", [2, 3, 4, 5, 6, 7, 8, 9, 10])
def test_at_paper_scale_the_settings_are_the_papers(catalogue, table):
    for run in catalogue.runs[f"fedsdd_table{table}", "paper"]:
        recipe, method = run.recipe, run.axes["method"]
        every, client, server = stated(table, run.axes)
        assert found(recipe, ["clients", "participants"]) | {
            "models": recipe.global_models, "rounds": run.length.rounds,
        } == every, method  # fmt: skip
        assert found(recipe.client, client) == client, method
        assert recipe.partition.name == "dirichlet_by_client"
        assert recipe.data.server_validation == (5000 if table == 10 else 0)
        if recipe.local.name == "fedprox":
            assert recipe.local.mu == 0.001
        if recipe.global_trainer:
            assert found(recipe.server, server) == server, method
            expected = {"cifar10": "cifar100", "cifar100": "parquet"}
            assert recipe.public.name == expected[recipe.data.name]
            warm_up = {"basic_warm_20": 20, "basic_warm_40": 40}.get(method, 0)
            assert recipe.global_trainer.warm_up == warm_up
        if method in ("fedsdd_r1", "fedsdd_r2", "fedsdd_r4"):
            assert recipe.ensemble.checkpoints == int(method[-1])
        if method in ("gaussian_k1", "dirichlet_k1"):
            assert run.length.evaluate.samples == 10


@pytest.mark.parametrize("table", SAME)
def test_both_papers_are_about_the_same_runs(catalogue, table):
    def runs(name):
        return {(run.recipe, run.length) for run in catalogue.runs[name, "paper"]}

    one, other = runs(f"fedsdd_table{table}"), runs(f"fedeed_table{SAME[table]}")
    assert one <= other
    # FedEED has one more ensemble, for each of two partitions.
    assert len(other - one) == (2 if table == 5 else 0)


def test_figure_2_of_fedeed_is_about_the_ensembles_of_its_table_1(catalogue):
    figure, table = (
        {(run.axes["method"], run.recipe) for run in catalogue.runs[name, "paper"]}
        for name in ("fedeed_figure2", "fedeed_table1")
    )
    assert figure == table


def test_tables_of_fedeed_call_its_method_by_its_name(catalogue):
    for (name, _), runs in catalogue.runs.items():
        if name.startswith("fedeed"):
            assert not [run.style.label for run in runs if "FedSDD" in run.style.label], name


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


def trained_by(run):
    """Return the settings that clients' models of a one-shot run depend on."""
    return members_models(run.recipe)[0].job.config


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
    every = {trained_by(run) for run in runs}
    recipes = {recipe for recipe in every if recipe.start is None}
    assert len(every) == len(recipes) + 1  # FedKD after three rounds of averaging
    trained = sorted((recipe.model.width, recipe.aggregator_fraction) for recipe in recipes)
    assert trained == [(28, 0.1), (128, 0.0), (128, 0.1)]
    shared = catalogue.runs["fens_shared_models", "paper"]
    models = defaultdict(set)
    for run in (run for run in shared if run.axes["partition.alpha"] == 0.1):
        models[trained_by(run)].add(run.axes["method"])
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
