"""The settings that FENS states, beside those of its experiments at scale `paper`."""

import pytest
from tests.shared.experiments import experiments

from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

#: Experiments on images in which all clients' models are trained as Section 3.1 says.
IMAGES = [f"fens_table{number}" for number in (1, 2, 3, 4, 7, 9, 10, 11)]
IMAGES += ["fens_figure3", "fens_figure8", "fens_int8", "fens_shared_models"]
#: Sections 3.1 and B.1: epochs, rate and batch of local training.
LOCAL = {
    "cifar10": (500, 0.0025, 16),
    "cifar100": (500, 0.0025, 16),
    "svhn": (50, 0.01, 16),
    "ag_news": (20, 0.01, 8),
}
#: Appendix B.1.
PUBLIC = {"cifar10": "cifar100", "cifar100": "parquet", "svhn": "cifar10", "ag_news": "held_out"}
#: Table 8: rule, hidden units, rates of clients and server, batch, local steps, rounds.
AGGREGATORS = {
    "cifar10": ("mlp", 40, 1.0, 0.001, 128, 1, 500),
    "cifar100": ("per_class", None, 1.0, 0.003, 128, 1, 1000),
    "svhn": ("mlp", 40, 0.1, 0.01, 128, 1, 500),
    "ag_news": ("mlp", 40, 1.0, 0.001, 128, 1, 500),
    "heart_disease": ("per_class", None, 0.1, 0.1, 2, 5, 50),
    "camelyon16": ("per_class", None, 1.0, 0.0005, 64, 1, 2000),
    "isic2019": ("mlp", 24, 1.0, 0.001, 16, 1, 2500),
}
#: Table 6, by alpha: rates of clients and server; FedAdam and FedYogi have one for 0.01 and 0.05.
RATES = {
    "fedavg": {0.01: (0.01,), 0.05: (0.01,), 0.1: (0.1,)},
    "fedprox": {0.01: (0.01,), 0.05: (0.01,), 0.1: (0.1,)},
    "fedyogi": dict.fromkeys((0.01, 0.05, 0.1), (0.01, 0.01)),
    "fedadam": dict.fromkeys((0.01, 0.05, 0.1), (0.01, 0.01)),
    "fednova": {0.01: (0.0001,), 0.05: (0.02,), 0.1: (0.005,)},
    "scaffold": {0.01: (0.0001, 1.0), 0.05: (0.01, 0.1), 0.1: (0.01, 1.0)},
}
#: Appendix B.2: the values that were tried, of clients' and of the server's rate.
FOUR = {0.1, 0.01, 0.001, 0.0001}
ADAPTIVE = {
    "client.learning_rate": FOUR,
    "aggregation.server_optimizer.learning_rate": {10, 1, 0.1, 0.01, 0.001},
}
GRIDS = {
    ("fens_sweep_fedavg", "fedavg"): {"client.learning_rate": FOUR},
    ("fens_sweep_fedprox", "fedprox"): {
        "client.learning_rate": {0.1, 0.01},
        "local.mu": {1, 0.1, 0.01},
    },
    ("fens_sweep_fedadam", "fedadam"): ADAPTIVE,
    ("fens_sweep_fedadam", "fedyogi"): ADAPTIVE,
    ("fens_sweep_fednova", "fednova"): {"client.learning_rate": {0.005, 0.01, 0.02, 0.05, 0.08}},
    ("fens_sweep_scaffold", "scaffold"): {
        "client.learning_rate": FOUR,
        "aggregation.learning_rate": {1, 0.1, 0.01},
    },
    ("fens_sweep_fedavg_stc", "fedavg_stc"): {"client.learning_rate": {0.1, 0.05, 0.01, 0.001}},
    ("fens_sweep_svhn", "fedavg"): {"client.learning_rate": FOUR},
}


@pytest.fixture(scope="module")
def runs():
    """A function that returns an experiment's runs at a scale; skips where data are not there."""
    found, uncounted = experiments()

    def of(name, scale="paper"):
        if name in uncounted:
            pytest.skip(uncounted[name])
        return found.runs[name, scale]

    return of


def alpha(run):
    return run.recipe.partition.alpha


@pytest.mark.parametrize("name", [*IMAGES, "fens_agnews"])
def test_clients_are_trained_as_section_3_says(runs, name):
    for run in runs(name):
        recipe = run.recipe
        data, clients = recipe.data.name, run.axes.get("clients", 20)
        assert recipe.clients == (10 if data == "ag_news" else clients)
        if isinstance(recipe, OneShotRecipe) and run.axes["method"] != "fedcvae_ens":
            client = recipe.client
            assert (client.epochs, client.learning_rate, client.batch_size) == LOCAL[data]
            assert client.schedule.name == "cosine"
            if run.axes["method"].startswith("fens"):
                assert recipe.aggregator_fraction == 0.1
            if recipe.public is not None and recipe.public.name != "generated":
                assert recipe.public.name == PUBLIC[data]
        if isinstance(recipe, Recipe) and run.axes["method"] != "fedavg_os":
            client = recipe.client
            assert recipe.participants == recipe.clients
            steps = (None, 50, 8) if data == "ag_news" else (2, None, 16)
            assert (client.epochs, client.steps, client.batch_size) == steps
            most = 4 if "4r" in run.axes["method"] else 150 if data == "ag_news" else 100
            assert run.length.rounds <= most


@pytest.mark.parametrize(
    "name", ["fens_table1", "fens_agnews", *(f"fens_table{number}" for number in (12, 14, 16))]
)
def test_aggregators_are_trained_as_table_8_says(runs, name):
    tried = [run for run in runs(name) if run.axes["method"].startswith("fens")]
    assert tried
    for run in tried:
        rule, how = run.recipe.aggregator, run.recipe.aggregator_training
        found = (
            rule.name,
            getattr(rule, "hidden", None),
            how.learning_rate,
            how.server_optimizer.learning_rate,
            how.batch_size,
            how.steps,
            how.rounds,
        )
        assert found == AGGREGATORS[run.recipe.data.name]
        assert how.server_optimizer.name == "adam"


def test_rates_are_those_of_table_6(runs):
    found = {}
    for run in runs("fens_table10"):
        if isinstance(run.recipe, Recipe):
            name, rule = run.axes["method"], run.recipe.aggregation
            server = {"scaffold": rule.learning_rate}
            if name in ("fedadam", "fedyogi"):
                server[name] = rule.server_optimizer.learning_rate
            rates = run.recipe.client.learning_rate, server.get(name)
            kept = tuple(rate for rate in rates if rate is not None)
            found.setdefault(name, {})[alpha(run)] = kept
            assert name != "fedprox" or run.recipe.local.mu == 0.01
    assert found == RATES


@pytest.mark.parametrize(("name", "method"), GRIDS)
def test_sweeps_try_the_values_of_appendix_b(runs, name, method):
    tried = [run for run in runs(name) if run.axes["method"] == method]
    axes = GRIDS[name, method]
    assert {axis: {run.axes[axis] for run in tried} for axis in axes} == axes
    assert {alpha(run) for run in tried} >= {0.01, 0.05, 0.1}
    for run in tried:  # never on test samples, and never cells' tuned rates
        assert (run.length.role, run.recipe.validation) == ("validation", 0.1)
        assert run.recipe.client.learning_rate == run.axes["client.learning_rate"]


def test_figures_have_all_the_methods_of_the_paper(runs):
    methods = {run.axes["method"] for run in runs("fens_figure3")}
    table = {run.axes["method"] for run in runs("fens_table1")}
    assert table < methods
    assert methods - table == {"fedavg", "fedadam", "fedavg_stc"}
    rules = [str(run.axes["aggregator"]) for run in runs("fens_figure8")]
    assert sorted(set(rules)) == sorted(
        {str(run.axes["aggregator"]) for run in runs("fens_table9")}
    )
    assert {run.recipe.quantisation.name for run in runs("fens_figure8")} == {"int8"}
