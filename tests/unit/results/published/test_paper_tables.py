"""Every number of FedEED's, FedSDD's and FENS's tables has its cell in an experiment."""

from collections import defaultdict

import pytest
from tests.shared.experiments import WORKFLOW, experiments

from fedstage.data.datasets.isic2019 import CLASSES
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


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_of_accuracies_is_an_experiment(catalogue, paper):
    rows = load_rows(WORKFLOW / f"papers/{paper}")
    accuracies = {row.table for row in rows if row.metric == "top1_accuracy"}
    stated = {one.table for one in tables(catalogue).values() if one.paper == paper}
    assert accuracies <= stated


@pytest.mark.parametrize("paper", PAPERS)
def test_every_experiment_has_three_scales(catalogue, paper):
    for name, experiment in catalogue.experiments.items():
        if name.startswith(paper) and experiment.table.published is not None:
            assert {"smoke", "mini", "paper"} <= set(experiment.scales), name


def test_each_client_has_its_own_distribution_over_classes(catalogue):
    """Both papers divide data as Hsu et al. do, where all clients have the same size."""
    for (name, _), runs in catalogue.runs.items():
        if name.startswith(PAPERS):
            kinds = {run.recipe.partition.name for run in runs}
            both = {"dirichlet"} if name == "fedsdd_partitions" else set()
            assert kinds == {"dirichlet_by_client"} | both, name


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


#: FENS's Table 6: rates of clients, and of servers with an optimiser, by alpha.
TUNED = {
    "fedavg": {0.01: 0.01, 0.05: 0.01, 0.1: 0.1},
    "fedprox": {0.01: 0.01, 0.05: 0.01, 0.1: 0.1},
    "fedyogi": {0.01: (0.01, 0.01), 0.05: (0.01, 0.01), 0.1: (0.01, 0.01)},
    "fedadam": {0.01: (0.01, 0.01), 0.05: (0.01, 0.01), 0.1: (0.01, 0.01)},
    "fednova": {0.01: 0.0001, 0.05: 0.02, 0.1: 0.005},
    "scaffold": {0.01: (0.0001, 1.0), 0.05: (0.01, 0.1), 0.1: (0.01, 1.0)},
}


def tuned(run):
    recipe, rate = run.recipe, run.recipe.client.learning_rate
    if run.axes["method"] == "scaffold":
        return rate, recipe.aggregation.learning_rate
    if run.axes["method"] in ("fedadam", "fedyogi"):
        return rate, recipe.aggregation.server_optimizer.learning_rate
    return rate


def test_iterative_methods_of_fens_have_the_tuned_rates(catalogue):
    runs = [
        run for run in catalogue.runs["fens_table10", "paper"] if isinstance(run.recipe, Recipe)
    ]
    found = {}
    for run in runs:
        found.setdefault(run.axes["method"], {})[run.axes["partition.alpha"]] = tuned(run)
        client = run.recipe.client
        assert (run.length.rounds, run.recipe.participants, client.batch_size) == (100, 20, 16)
        assert (client.epochs, client.schedule.name) == (2, "constant")
        assert getattr(run.recipe.local, "mu", 0.01) == 0.01
    assert found == TUNED


def test_only_fens_sets_samples_of_the_clients_aside(catalogue):
    """Section 3.1: its aggregator has a tenth of them, and all baselines train on all of them."""
    names = [*fens_tables(catalogue).values(), "fens_figures3_8"]
    for name in names:
        for scale in catalogue.experiments[name].scales:
            for run in catalogue.runs[name, scale]:
                for recipe in (one.recipe for one in run.candidates or run.chain()):
                    one_shot = isinstance(recipe, OneShotRecipe)
                    kept = local_recipe(recipe).aggregator_fraction if one_shot else 0.0
                    fitted = name == "fens_table9" or run.axes["method"].startswith("fens")
                    found = (kept, recipe.validation)
                    assert found == (0.1 if fitted else 0.0, 0.0), (name, run.axes)


@pytest.mark.parametrize("name", ["fens_table7", "fens_table11"])
def test_parts_of_a_chain_train_as_they_do_by_themselves(catalogue, name):
    """FedKD of four rounds: three of FedAvg as FedAvg has them, and FedKD as FedKD."""
    known = {
        training_id(run.recipe)
        for run in catalogue.runs["fens_table10", "paper"]
        if isinstance(run.recipe, Recipe)
    }
    for run in catalogue.runs[name, "paper"]:
        if not run.axes["method"].startswith("fedkd_4r"):
            continue
        (rounds,) = (one for one in run.chain() if isinstance(one.recipe, Recipe))
        (taught,) = (one for one in run.chain() if isinstance(one.recipe, OneShotRecipe))
        client = rounds.recipe.client
        assert (rounds.length.rounds, client.epochs, client.schedule.name) == (3, 2, "constant")
        assert client.learning_rate == TUNED["fedavg"][run.axes["partition.alpha"]]
        long = taught.recipe.client
        assert long.epochs == (50 if taught.recipe.data.name == "svhn" else 500)
        assert long.schedule.name == "cosine"
        assert taught.recipe.server.steps == 19532
        if rounds is run.before:
            assert training_id(rounds.recipe) in known


#: FENS's Table 8: rule, hidden units, eta_l, eta_s, batch, local steps and rounds; epochs of 4.2.
TRAINED = {
    ("fens_table1", "cifar10"): ("mlp", 40, 1.0, 0.001, 128, 1, 500, 500),
    ("fens_table1", "cifar100"): ("per_class", None, 1.0, 0.003, 128, 1, 1000, 500),
    ("fens_table1", "svhn"): ("mlp", 40, 0.1, 0.01, 128, 1, 500, 50),
    ("fens_table11", "svhn"): ("mlp", 40, 0.1, 0.01, 128, 1, 500, 50),
    ("fens_agnews", "ag_news"): ("mlp", 40, 1.0, 0.001, 128, 1, 500, 20),
    ("fens_table12", "camelyon16"): ("per_class", None, 1.0, 0.0005, 64, 1, 2000, 55),
    ("fens_table14", "heart_disease"): ("per_class", None, 0.1, 0.1, 2, 5, 50, 50),
    ("fens_table15", "heart_disease"): ("per_class", None, 0.1, 0.1, 2, 5, 50, 50),
    ("fens_table17", "isic2019"): ("mlp", 24, 1.0, 0.001, 16, 1, 2500, 20),
}


@pytest.mark.parametrize(("name", "data"), TRAINED, ids=str)
def test_aggregators_of_fens_are_trained_as_published(catalogue, name, data):
    found = set()
    for run in catalogue.runs[name, "paper"]:
        if run.axes["method"] in ("fens", "fens_int8") and run.recipe.data.name == data:
            rule, how = run.recipe.aggregator, run.recipe.aggregator_training
            hidden, server = getattr(rule, "hidden", None), how.server_optimizer.learning_rate
            steps = how.batch_size, how.steps, how.rounds, run.recipe.client.epochs
            found.add((rule.name, hidden, how.learning_rate, server, *steps))
            assert how.server_optimizer.name == "adam"
    assert found == {TRAINED[name, data]}


# --- FENS, Fed-ISIC2019 ---------------------------------------------------------------------------

#: Pictures of the training fold in FLamby's table `train_test_split`, by class.
OF_CLASS = {
    "MEL": 3332, "NV": 9084, "BCC": 2649, "AK": 712, "BKL": 1950, "DF": 184, "VASC": 201,
    "SCC": 485,
}  # fmt: skip


@pytest.mark.parametrize("name", ["fens_table16", "fens_table17"])
def test_all_clients_train_on_the_loss_of_the_benchmark(catalogue, name):
    (loss,) = {run.recipe.client.loss for run in catalogue.runs[name, "paper"]}
    pictures = [OF_CLASS[label] for label in CLASSES]
    inverse = [round(sum(pictures) / count, 4) for count in pictures]
    assert (loss.name, loss.gamma, list(loss.class_weights)) == ("focal", 2.0, inverse)

    # Digits have other classes.
    (short,) = {run.recipe.client.loss for run in catalogue.runs[name, "smoke"]}
    assert (short.name, short.class_weights) == ("focal", None)


# --- FENS, Fed-Heart-Disease ----------------------------------------------------------------------

RELEASED = {
    "fedavg": 79.4, "fedprox": 79.2, "fedadam": 78.1, "fedyogi": 78.5, "scaffold_as_released": 79.2,
    "fens_as_released": 78.1,
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
    assert len(beside) == 2 * (len(RELEASED) + 2)  # SCAFFOLD and FENS as published


def test_both_standardisations_are_of_the_same_lines(catalogue):
    recipes = {(run.axes["method"], run.recipe) for run in catalogue.runs["fens_table14", "paper"]}
    assert len(recipes) == len(RELEASED) + 2


def test_settings_of_the_benchmark(catalogue):
    rates = {}
    for run in catalogue.runs["fens_table14", "paper"]:
        recipe, client = run.recipe, run.recipe.client
        if isinstance(recipe, OneShotRecipe):
            assert (client.optimiser, client.learning_rate, client.batch_size) == ("adam", 0.001, 4)
            continue
        assert (recipe.clients, recipe.participants, run.length.rounds) == (4, 4, 150)
        assert (client.steps, client.batch_size, client.batches) == (100, 4, "continued")
        published = run.axes["method"] == "scaffold"  # Karimireddy et al.: the plain mean
        assert recipe.aggregation.weights == ("uniform" if published else "samples")
        optimiser = recipe.aggregation.server_optimizer
        if optimiser.name != "average":
            moments = (optimiser.beta1, optimiser.beta2, optimiser.epsilon, optimiser.v_start)
            assert moments == (0.9, 0.999, 1e-8, "zero")
        server = getattr(optimiser, "learning_rate", 1.0)
        rates[run.axes["method"]] = (client.learning_rate, server)
    slow = dict.fromkeys(("fedavg", "fedprox", "scaffold", "scaffold_as_released"), (0.001, 1.0))
    assert rates == slow | {"fedadam": (0.01, 0.01), "fedyogi": (0.003162, 0.01)}
