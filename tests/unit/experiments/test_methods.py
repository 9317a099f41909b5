"""The library of methods: each is a valid run, and is what its paper says."""

from itertools import product
from pathlib import Path

import pytest

from fedstage.experiments.resolution import resolve
from fedstage.plan.training_folder import owners, training_id
from fedstage.settings.equivalences import simplest
from fedstage.settings.exchange import students
from fedstage.settings.experiments import Experiment
from fedstage.settings.groups import client_groups, group_participants
from fedstage.storage.yaml_files import load_yaml

LIBRARY = load_yaml(Path(__file__).parents[3] / "workflow/methods.yaml")
BASE = {
    "data": {"digits": {"server_validation": 100}},
    "clients": 20,
    "validation": 0.1,
    "aggregator_fraction": 0.1,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 8,
    "model": "cnn_small",
    "rounds": 100,
    "client": {"epochs": 40, "batch_size": 64, "learning_rate": 0.8},
    "server": {"steps": 5000, "batch_size": 256, "learning_rate": 0.1},
    "seed": 0,
}


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
#: What an experiment gives to methods in which the server has samples of its own.
CORE = {"core": {}, "model": "resnet8", "server.augmentation": "crop"}
ON_CORE = ("core_alone", "kd", "bkd", "melting", "ema", "ema_round", "ft_kd")
HETEROGENEOUS = ("feddf_heterogeneous", "feddf_server", *FEDET, "dsfl", "scarlet", "fedmd")


@pytest.mark.parametrize("method", LIBRARY)
def test_every_method_is_a_run_of_the_papers_base(method):
    needed = {
        "fedgkt": SPLIT,
        "fens_ds": {"data": {"cifar10": {}}},
        "fafi": {"model": "resnet8"},
        "ghofl": {"model": "resnet8"},
        "ghofl_nb": {"model": "resnet8"},
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


def test_methods_of_several_architectures_draw_the_groups_of_clients():
    for method in HETEROGENEOUS:
        assert served(method).recipe.client_groups == "drawn", method


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


def test_heterogeneous_feddf_has_a_student_of_each_group_and_by_choice_the_servers():
    without, with_server = served("feddf_heterogeneous").recipe, served("feddf_server").recipe
    assert students(without) == students(with_server) == (0, 1, 2)
    assert (without.server_model, with_server.server_model) == (False, True)
    assert [len(group_participants(with_server, group)) for group in range(3)] == [0, 8, 8]


def test_scarlet_is_dsfl_with_kept_labels_and_a_power_of_mean_probabilities():
    scarlet, dsfl = served("scarlet").recipe, served("dsfl").recipe
    changed = {name for name, value in scarlet if value != getattr(dsfl, name)}
    assert changed == {"local", "distillation", "server"}
    assert (scarlet.local.cache.duration, scarlet.ensemble.average) == (50, "probabilities")
    power = scarlet.distillation.name, scarlet.server.temperature, scarlet.server.sharpening
    assert power == ("kl", 1.0, 2.0)


def test_in_fedgems_the_servers_model_is_a_student_and_clients_hear_it():
    recipe = served("fedgems", **CORE).recipe
    assert (recipe.local.teacher, recipe.distillation.epsilon) == ("server", 0.75)
    assert (recipe.public.name, students(recipe)) == ("core", (0,))
    assert client_groups(recipe) == range(1, 3)


@pytest.mark.parametrize("local", ["fedprox", "scaffold", "moon", "fednova"])
def test_fedftg_goes_with_any_local_trainer_and_its_code_has_another_generator(local):
    needed = {"local": local}
    published, released = (run(f"fedftg{name}", **needed).recipe for name in ("", "_as_released"))
    assert (published.generator.name, published.public.name) == ("fedftg", "generated")
    assert students(published) == (0,)
    same = released.model_copy(update={"generator": published.generator})
    assert same == published
    plain = simplest(run("fedavg", **needed).recipe)
    assert owners(released)[1] == owners(published)[1] == plain


def test_fedgo_is_feddf_whose_votes_weigh_by_odds():
    fedgo, feddf = run("fedgo").recipe, run("feddf").recipe
    assert (fedgo.ensemble.name, fedgo.ensemble.average) == ("odds", "probabilities")
    assert fedgo.model_copy(update={"ensemble": feddf.ensemble}) == feddf


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


GLOBAL_MODELS, CHECKPOINTS = (2, 3, 4, 7, 8), (1, 2, 4)


@pytest.mark.parametrize("method", ["fedsdd", "fedsdd_fedprox", "fedsdd_scaffold", "fedeed"])
def test_k_and_r_are_axes(method):
    grid = {"method": [method], "global_models": list(GLOBAL_MODELS)}
    found = runs(**grid, **{"ensemble.checkpoints": list(CHECKPOINTS)})
    shapes = [(one.recipe.global_models, one.recipe.ensemble.checkpoints) for one in found]
    assert shapes == list(product(GLOBAL_MODELS, CHECKPOINTS))
    assert all(students(one.recipe) == (0,) for one in found)
    assert len({training_id(one.recipe) for one in found}) == len(shapes)


@pytest.mark.parametrize(
    ("participants", "groups", "shares"), [(14, 7, [2] * 7), (20, 10, [2] * 10)]
)
def test_more_participants_allow_more_global_models(participants, groups, shares):
    one = recipe("fedsdd", participants=participants, global_models=groups)
    assert [len(group_participants(one, group)) for group in range(groups)] == shares


def test_the_local_trainer_is_an_axis():
    found = runs(method=["fedsdd"], local=["fedavg", {"fedprox": {"mu": 0.001}}, "scaffold"])
    assert [one.recipe.local.name for one in found] == ["fedavg", "fedprox", "scaffold"]
    assert found[1].recipe == recipe("fedsdd_fedprox")


def test_warm_up_is_an_axis():
    found = runs(method=["basic_distillation"], **{"global.warm_up": [0, 20, 40]})
    assert [one.recipe.global_trainer.warm_up for one in found] == [0, 20, 40]
    assert found[1].recipe == recipe("basic_distillation_warm_up")
    assert students(found[0].recipe) == (0, 1, 2, 3)


def test_samples_and_distribution_of_fedbe_are_axes():
    found = runs(method=["fedbe_gaussian"], **{"ensemble.samples": [5, 10]})
    assert [one.recipe.ensemble.samples for one in found] == [5, 10]
    dirichlet = recipe("fedbe_gaussian", **{"ensemble.distribution": "dirichlet"})
    assert dirichlet == recipe("fedbe_dirichlet")


def test_names_for_the_same_method_are_the_same_recipe():
    assert recipe("fedeed") == recipe("fedsdd")


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


def test_fedbe_averages_probabilities_and_weights():
    for name in ("fedbe_gaussian", "fedbe_dirichlet", "fedbe_as_released"):
        one = recipe(name)
        assert one.ensemble.average == "probabilities"
        assert one.ensemble.samples == 10
        assert one.server.swa is not None
    assert recipe("fedbe_as_released").ensemble.variant == "as_released"
    assert recipe("fedbe_as_released").server.sharpening == 2.0


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


def test_fednova_has_momentum_on_both_sides():
    one = recipe("fednova")
    optimiser = one.aggregation.server_optimizer
    assert (one.client.momentum, optimiser.beta, optimiser.learning_rate) == (0.9, 0.9, 1.0)


def test_fedavg_stc_is_fens_s_half_in_16_bits():
    how = recipe("fedavg_stc").compression
    assert (how.sparsity, how.bits, how.residuals, how.downstream) == (0.5, 16, True, True)


def test_fedgkt_scores_clients_extractors_with_the_servers_model():
    """He et al. 2020: T = 3, and both losses count alike."""
    fedgkt = run("fedgkt", **SPLIT)
    assert (fedgkt.recipe.local.alpha, fedgkt.recipe.local.temperature) == (1.0, 3.0)
    assert fedgkt.length.evaluate.name == "split_model"
    assert fedgkt.recipe.local.exchanges == "features"
    assert students(fedgkt.recipe) == ()
