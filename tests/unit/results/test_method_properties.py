from pathlib import Path

import pytest
from measured import SERVER, SETTINGS

from fedstage.errors import FedstageError
from fedstage.experiments.resolution import resolve
from fedstage.plan.jobs import Job
from fedstage.results.method_properties import Cost, free_share, properties
from fedstage.settings.experiments import Experiment
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

METHODS = load_yaml(Path(__file__).parents[3] / "workflow/methods.yaml")


def find(name, key):
    """A setting of a method of the library, or of the one that it is like."""
    settings = METHODS[name]
    if key in settings or "like" not in settings:
        return settings.get(key)
    return find(settings["like"], key)


FEDERATED = [name for name in METHODS if find(name, "training") in (None, "federated")]
BASE = SETTINGS | {
    "data": {"digits": {"held_out": 100, "server_validation": 20}},
    "clients": 20, "participants": 8, "validation": 0.1, "rounds": 6,
    "server": SERVER | {"steps": 50},
    "partition": {"dirichlet": {"alpha": 0.1}},
}  # fmt: skip


def of_method(name, **changes):
    raw = {"title": "a", "base": BASE | changes | {"method": name}, "scales": {"default": None}}
    (run,) = resolve("a", validate(Experiment, raw, "here"), "default", METHODS)
    return properties(run.recipe, run.length)


def of_line(rounds=6, **changes):
    settings = {key: value for key, value in BASE.items() if key != "rounds"}
    recipe = Recipe.model_validate(settings | changes)
    return properties(recipe, RunLength(rounds=rounds))


def sdd(checkpoints=1, kind="designated", **changes):
    ensemble = {"aggregated": {"checkpoints": checkpoints}}
    parts = {"global_models": 4, "ensemble": ensemble, "global": kind}
    return of_line(**parts | changes)


SECURE = {"secure": {"threshold": 5, "clip": 1.0, "most_samples": 999}}


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "moon"])
def test_no_stage_of_the_server_reads_single_clients_behind_secure_aggregation(method):
    assert of_method(method, aggregation=SECURE).reader is None


# --- the published rows: FedDF C; FedEED and FedSDD K R -------------------------------------------


def test_feddf_has_an_ensemble_of_all_participants_and_waits_with_all():
    found = of_method("feddf")
    assert found.ensemble == found.passes == Cost(8, growth=1.0, constant=0.0)
    assert (found.students, found.sees_clients, found.free) == (1, True, 0.0)


def test_fedsdd_has_an_ensemble_of_its_groups_that_does_not_grow_and_one_group_waits():
    found = of_method("fedsdd")
    assert found.ensemble == found.passes == Cost(4, growth=0.0, constant=4.0)
    assert (found.students, found.sees_clients, found.free) == (1, False, 0.75)


@pytest.mark.parametrize("checkpoints", [1, 2, 4])
@pytest.mark.parametrize("groups", [2, 4, 7])
def test_temporal_ensembles_have_k_times_r_members_of_which_k_are_new(checkpoints, groups):
    found = sdd(checkpoints, global_models=groups)
    assert found.ensemble.models == groups * checkpoints
    assert found.passes.models == groups


def test_the_first_rounds_of_a_temporal_ensemble_have_fewer():
    assert sdd(4, rounds=2).ensemble.models == 8


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "scaffold", "fed_ensemble"])
def test_without_distillation_nothing_waits_and_no_clients_model_is_seen(name):
    found = of_method(name)
    assert found.ensemble == found.passes == Cost(0, 0.0, 0.0)
    assert (found.students, found.sees_clients, found.free) == (0, False, None)


def test_inference_is_of_one_model_or_of_an_ensemble():
    assert of_method("fedsdd").inference == 1
    assert of_method("fed_ensemble").inference == 4
    assert of_method("fedavg", evaluate="clients").inference == 8
    assert of_method("fedsdd", evaluate={"aggregated": {"checkpoints": 3}}).inference == 12


HEADED = {"cnn_small": {"head": {}}}  # which MOON and Fed-ET need
DRAWN = [name for name in FEDERATED if find(name, "client_groups") == "drawn"]


OF_CORE = {  # what distillation on the server's own samples needs
    "model": "resnet8", "core": {}, "server": BASE["server"] | {"augmentation": "crop"},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*FEDERATED} - {*DRAWN}))
def test_every_method_of_the_library_has_properties(name):
    needed = OF_CORE if find(name, "public") == "core" else {"model": HEADED}
    found = of_method(name, **needed)
    assert (found.free is None) == (found.students == 0) == (found.ensemble.models == 0)


@pytest.mark.parametrize("name", DRAWN)
def test_groups_that_are_drawn_have_no_numbers_that_edges_tell(name):
    """Each has a participant for every participant, and how many are filled is drawn."""
    parts = {"model": "resnet_upper", "architectures": ["resnet_upper", *["resnet_lower"] * 2]}
    needed = parts if name == "fedgkt" else {"model": HEADED}
    if find(name, "public") == "core":
        needed = OF_CORE
    with pytest.raises(FedstageError) as caught:
        of_method(name, **needed, global_models=3)
    assert str(caught.value) == (
        "properties: client_groups = 'drawn': must be 'by_index', because edges do not tell how "
        "many of a group's participants are filled"
    )


def of_participants(name, **changes):
    """Properties of a method of two groups of clients, each with half of a round's participants."""
    model = {"model": HEADED, "global_models": 3, "client_groups": "by_index"}
    settings = {
        key: value
        for key, value in METHODS[name].items()
        if key not in ("label", "colour", "marker", "evaluate")
    }
    return of_line(**{**model, **settings, "client_groups": "by_index", **changes})


def test_fedets_ensemble_is_of_clients_and_heads_make_all_of_them_wait():
    fedet, apart = of_participants("fedet"), of_participants("fedet", head_sharing=False)
    assert fedet.ensemble == fedet.passes == Cost(8, growth=1.0, constant=0.0)
    assert (fedet.students, fedet.sees_clients, fedet.free) == (1, True, 0.0)
    # Where no head comes down, nobody waits for the server's model: it is no client's.
    assert (apart.students, apart.sees_clients, apart.free) == (1, True, 1.0)
    assert fedet.ensemble == apart.ensemble


def test_a_server_that_learns_from_features_sees_each_client():
    found = of_participants(
        "fedgkt", model="resnet_upper", architectures=["resnet_upper", "resnet_lower"],
        global_models=2,
    )  # fmt: skip
    assert (found.students, found.sees_clients, found.free) == (0, True, None)


def test_heads_alone_are_a_sum_and_need_no_look_at_a_client():
    found = of_participants("fedet", **{"global": None})
    assert (found.students, found.sees_clients) == (0, False)


# --- who waits ------------------------------------------------------------------------------------


def test_with_basic_distillation_all_wait_and_every_model_is_a_student():
    found = sdd(kind="basic")
    assert (found.students, found.free) == (4, 0.0)


def test_uneven_groups_wait_by_participants_not_by_groups():
    assert sdd(global_models=3).free == 1 - 3 / 8  # 3 + 3 + 2
    assert sdd(participants=14).free == 1 - 4 / 14  # 4 + 4 + 3 + 3


def test_in_the_warm_up_nobody_waits():
    kind = {"basic": {"warm_up": 6}}
    assert sdd(kind=kind).students == 0
    assert sdd(kind=kind, rounds=7).students == 4


def test_a_designated_student_of_clients_sees_them_and_grows_but_lets_the_others_go_on():
    found = sdd(ensemble={"clients": {}})
    assert found.passes == Cost(8, growth=1.0, constant=0.0)
    assert (found.sees_clients, found.free) == (True, 0.75)


def job(round_, group, stage, name=""):
    return Job(round_, group, stage, f"{stage} {round_} {group} {name}")


def test_waiting_for_a_distillation_of_an_earlier_round_is_not_waiting_for_this_one():
    """As groups do that read one another's state of the round before."""
    old, now = job(1, 0, "distillation"), job(2, 0, "distillation")
    before = job(2, 0, "aggregation")
    first, second = job(3, 0, "local_training"), job(3, 1, "local_training")
    edges = {before: (old,), now: (before,), first: (now,), second: (before,)}
    assert free_share(edges, 2) == 0.5
    assert free_share({**edges, second: (job(2, 1, "x"),), job(2, 1, "x"): (now,)}, 2) == 0.0
    assert free_share({before: (old,), second: (before,)}, 2) is None


# --- teachers that are asked ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ensemble", "models"),
    [("clients", Cost(8, 1, 0)), ({"aggregated": {"checkpoints": 3}}, Cost(12, 0, 12))],
    ids=str,
)
def test_teachers_that_are_asked_are_those_whose_logits_would_be_read(ensemble, models):
    asked = BASE["server"] | {"augmentation": "flip", "teacher_images": "augmented"}
    parts = {"global_models": 4, "ensemble": ensemble, "global": "designated"}
    cached, found = of_line(**parts), of_line(**parts, server=asked)
    assert cached.ensemble == found.ensemble == models
    assert found.passes == models  # of all rounds: nothing is remembered
    assert found.sees_clients == cached.sees_clients == (ensemble == "clients")
    assert found.free == cached.free
