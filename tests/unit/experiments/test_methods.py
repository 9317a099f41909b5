"""The library of methods: each is a valid run, and is what its paper says."""

from pathlib import Path

import pytest
from tests.shared.settings import federated

from fedstage.experiments.resolution import resolve
from fedstage.protocol.teaching import students
from fedstage.settings.experiments import Experiment
from fedstage.storage.yaml_files import load_yaml

LIBRARY = load_yaml(Path(__file__).parents[3] / "workflow/methods.yaml")
BASE = federated(
    data={"digits": {"server_validation": 100}},
    clients=20,
    validation=0.1,
    aggregator_fraction=0.1,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=8,
    rounds=100,
    client={"epochs": 40, "batch_size": 64, "learning_rate": 0.8},
    server={"steps": 5000, "batch_size": 256, "learning_rate": 0.1},
)


def runs(**grid):
    experiment = Experiment(
        title="All", base=BASE, grid={**grid, "seed": [0]}, table={"rows": list(grid)},
        scales={"default": None},
    )  # fmt: skip
    return resolve("all", experiment, "default", LIBRARY)


def run(method, **point):
    (one,) = runs(method=[method], **{axis: [value] for axis, value in point.items()})
    return one


def recipe(method, **point):
    return run(method, **point).recipe


#: What an experiment gives to methods of models of several architectures.
SEVERAL = {"global_models": 3, "model.head": {"width": 8}}
FEDET = ("fedet", "fedet_uniform", "fedet_without_heads", "fedet_over_dissenters")
SPLIT = {
    "model": "resnet_upper", "architectures": ["resnet_upper", "resnet_lower"], "global_models": 2,
}  # fmt: skip
FEATURES = {
    "data": {"features": {"of": "digits", "encoder": {"torchvision": {
        "architecture": "resnet18", "weights": "published",
    }}}},
    "model": "mlp",
}  # fmt: skip
#: What an experiment gives to methods in which the server has samples of its own.
CORE = {"core": {}, "model": "resnet8", "server.augmentation": "crop"}
ON_CORE = ("core_alone", "kd", "bkd", "melting", "ema", "ema_round", "ft_kd")
HETEROGENEOUS = (
    "feddf_heterogeneous", "feddf_server", "takfl", *FEDET, "dsfl", "scarlet", "fedmd", "fedproto",
    "fedtgp",
)  # fmt: skip


@pytest.mark.parametrize("method", LIBRARY)
def test_every_method_is_a_run_of_the_papers_base(method):
    needed = {
        "fedgkt": SPLIT,
        "fens_ds": {"data": {"cifar10": {}}},
        "fafi": {"model": "resnet8"},
        **{key: {"model": "resnet8"} for key in ("ghofl", "ghofl_nb", "fedcgs", "afl")},
        **dict.fromkeys(("safle", "fedpft"), FEATURES),
        "dense": {"model": "resnet8"},
        "dense_as_released": {"model": "resnet8"},
    }
    needed |= dict.fromkeys(HETEROGENEOUS, SEVERAL) | dict.fromkeys(ON_CORE, CORE)
    needed["fedgems"] = CORE | {"global_models": 3}
    assert run(method, **needed.get(method, {})).axes["method"] == method


def test_distillation_on_the_core_is_that_of_its_paper_and_each_rival_changes_one_thing():
    """All terms weigh 1, tau = 2 and tau^2 as a factor; clients' models are teachers only."""
    kd = run("kd", **CORE)
    server = kd.recipe.server
    assert (server.labels, server.temperature, server.tau_squared) == (1.0, 2.0, True)
    assert (kd.recipe.global_trainer.starts_from, kd.recipe.public.name) == ("previous", "core")
    assert kd.before.recipe.on_core
    for method, key in (("bkd", "buffer"), ("melting", "buffer"), ("ema", "moving_average"),
                        ("ema_round", "moving_average"),
                        ("ft_kd", "factor_transfer")):  # fmt: skip
        other = run(method, **CORE)
        assert getattr(server, key) is None
        same = other.recipe.server.model_copy(update={key: None})
        assert other.recipe.model_copy(update={"server": same}) == kd.recipe, method
        assert other.before == kd.before
    buffers = [run(method, **CORE).recipe.server.buffer for method in ("bkd", "melting")]
    assert [(one.weight, one.refresh, one.after) for one in buffers] == [
        (1.0, "round", 0), (1.0, "epoch", 0),
    ]  # fmt: skip


def served(method, **changes):
    return run(method, **SEVERAL | changes)


def test_fedet_is_that_of_its_paper_and_each_ablation_changes_one_thing():
    """Cho et al. 2022: confident clients count more, and the plain mean of each architecture."""
    fedet = served("fedet").recipe
    assert (fedet.ensemble.weights, fedet.ensemble.average) == ("confidence", "probabilities")
    assert (fedet.distillation.name, fedet.distillation.diversity) == ("fedet", 0.05)
    assert (fedet.aggregation.weights, fedet.head_sharing) == ("uniform", True)
    assert students(fedet) == (0,)

    def changed(method):
        other = served(method).recipe
        return {name for name, value in fedet if value != getattr(other, name)}

    assert changed("fedet_without_heads") == {"head_sharing"}
    assert changed("fedet_over_dissenters") == {"distillation"}
    assert changed("fedet_uniform") == {"ensemble", "distillation"}
    uniform = served("fedet_uniform").recipe
    assert uniform.ensemble.weights == uniform.distillation.weights == "uniform"
    assert uniform.ensemble.average == "probabilities"


def test_dsfl_has_a_student_on_the_server_and_fedmd_none():
    dsfl, fedmd = served("dsfl"), served("fedmd")
    assert (dsfl.length.evaluate.name, fedmd.length.evaluate.name) == (
        "global_model",
        "each_client",
    )
    assert (students(dsfl.recipe), students(fedmd.recipe)) == ((0,), ())
    assert dsfl.recipe.local.exchanges == fedmd.recipe.local.exchanges == "logits"
    assert (dsfl.recipe.ensemble.average, fedmd.recipe.ensemble.average) == (
        "probabilities",
        "logits",
    )
    assert (dsfl.recipe.distillation.temperature, fedmd.recipe.distillation.name) == (0.1, "l1")


def test_steps_from_feddf_to_fedsdd():
    """FedSDD, Table 10: the server's own settings, then its optimiser, then neither trick."""
    original, first, second = (
        recipe(name).server for name in ("feddf_original", "feddf_improved", "feddf")
    )
    assert (original.optimiser, original.schedule.name) == ("adam", "cosine")
    assert (original.learning_rate, original.temperature) == (0.001, 1.0)
    for server in (original, first):
        assert server.drop_worst == "as_released"
        assert server.early_stopping.patience == 1000
    tricks = {"drop_worst", "early_stopping"}
    assert first.model_dump(exclude=tricks) == second.model_dump(exclude=tricks)
    assert (second.drop_worst, second.early_stopping) == ("none", None)
    assert recipe("feddf_original").model_copy(update={"server": second}) == recipe("feddf")


def test_variants_of_server_optimizers_are_those_of_their_sources():
    """FENS's code weights by samples and starts v at 0; FLamby's differs from it by two values."""
    for name in ("adam", "yogi"):
        published, released, flamby = (
            recipe(f"fed{name}{variant}").aggregation for variant in ("", "_as_released", "_flamby")
        )
        assert {how.server_optimizer.name for how in (published, released, flamby)} == {name}
        assert (published.weights, published.server_optimizer.v_start) == (
            "uniform", "epsilon_squared",
        )  # fmt: skip
        assert (released.weights, released.server_optimizer.v_start) == ("samples", "zero")
        theirs = {"beta2": 0.999, "epsilon": 1e-8}
        optimiser = released.server_optimizer.model_copy(update=theirs)
        assert flamby == released.model_copy(update={"server_optimizer": optimiser})
