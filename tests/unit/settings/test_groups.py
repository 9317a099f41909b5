"""Who trains which global model: participants, and faults, each in one line."""

import pytest

from fedstage.errors import FedstageError
from fedstage.settings.equivalences import simplest
from fedstage.settings.groups import client_groups, group_participants, model_of, models_of
from fedstage.settings.models import Head
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.validation import validate

HEAD = {"hidden": 12, "width": 8}
SMALL, LARGE = ({"cnn_small": {"width": width, "head": HEAD}} for width in (4, 8))
SERVER = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
RAW = {
    "data": {"digits": {"held_out": 50, "server_validation": 20}},
    "clients": 10,
    "partition": "iid",
    "participants": 8,
    "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}
SERVED = {"global_models": 3, "server_model": True}
HEADS = {
    **SERVED,
    "model": LARGE,
    "architectures": [LARGE, SMALL, SMALL],
    "client_groups": "drawn",
    "head_sharing": True,
}
FEDET = {
    **HEADS,
    "ensemble": {"clients": {"weights": "confidence", "average": "probabilities"}},
    "global": "designated",
    "server": SERVER,
}
DIGEST = {"local": "digest", "ensemble": "clients", "server": SERVER}
DSFL = {**DIGEST, **SERVED, "client_groups": "drawn", "global": "designated"}


def recipe(**changes):
    return validate(Recipe, RAW | changes, "here")


def fault(**changes):
    with pytest.raises(FedstageError) as caught:
        recipe(**changes)
    (only,) = str(caught.value).split("\n")
    return only


def participants(**changes):
    one = recipe(**changes)
    return [list(group_participants(one, group)) for group in range(one.global_models)]


# --- participants ---------------------------------------------------------------------------------


def test_the_servers_model_has_no_participants_and_the_others_share_them():
    assert participants(**SERVED) == [[], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(client_groups(recipe(**SERVED))) == [1, 2]
    assert list(client_groups(recipe(global_models=3))) == [0, 1, 2]


def test_what_is_left_goes_to_the_first_groups_that_clients_train():
    found = participants(global_models=4, server_model=True)
    assert [len(own) for own in found] == [0, 3, 3, 2]
    assert [participant for own in found for participant in own] == list(range(8))


def test_groups_that_are_drawn_have_a_participant_for_every_participant():
    assert participants(**SERVED, client_groups="drawn") == [[], list(range(8)), list(range(8, 16))]
    assert participants(global_models=2, client_groups="drawn") == [
        list(range(8)),
        list(range(8, 16)),
    ]


def test_groups_that_are_drawn_may_be_more_than_participants():
    assert len(participants(global_models=5, participants=2, client_groups="drawn")) == 5
    assert "participants = 2: at least global_models = 5" in fault(global_models=5, participants=2)


def test_a_group_has_its_architecture_and_group_0_the_main_model():
    one = recipe(**HEADS)
    assert [model_of(one, group).width for group in range(3)] == [8, 4, 4]


def test_a_single_group_that_clients_train_is_not_drawn():
    one = recipe(global_models=2, server_model=True, client_groups="drawn")
    assert simplest(one).client_groups == "by_index"
    assert simplest(recipe(**SERVED, client_groups="drawn")).client_groups == "drawn"


# --- faults of groups -----------------------------------------------------------------------------

BOUND = [{"model": "cnn_small", "clients": 4}]
GROUP_FAULTS = [
    (
        {"server_model": True},
        "global_models = 1: at least 2 with server_model = true, because no client trains the "
        "first",
    ),
    (
        {"server_model": True, "global_models": 4, "participants": 2},
        "participants = 2: at least 3, one for each group that clients train",
    ),
    (
        {"global_models": 4, "participants": 2},
        "participants = 2: at least global_models = 4, one for each group",
    ),
    (
        {"head_sharing": True, "model": LARGE, "global_models": 2},
        "head_sharing = true: needs server_model = true, a model that no client trains, not "
        "server_model = false",
    ),
    (
        {"client_groups": "dealt"},
        "client_groups = 'dealt': must be 'by_index' or 'drawn'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), GROUP_FAULTS)
def test_faults_of_groups(changes, message):
    assert fault(**changes) == f"here: {message}"


def described(width):
    return f"head = {{'hidden': 12, 'width': {width}, 'relu': True}}"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"cnn_small": {"head": HEAD | {"width": 9}}},
            f"model = 'cnn_small': head_sharing needs the same head in all models, and "
            f"{described(9)}, where that of model = 'cnn_small' has {described(8)}",
        ),
        (
            "logistic_regression",
            "model = 'logistic_regression': head_sharing needs the same head in all models, and "
            f"no head, where that of model = 'cnn_small' has {described(8)}",
        ),
    ],
)
def test_heads_must_be_the_same(other, message):
    assert fault(**HEADS | {"architectures": [LARGE, SMALL, other]}) == f"here: {message}"


def test_models_without_a_head_have_the_default_one_of_what_needs_it():
    plain = {"cnn_small": {"width": 4}}
    of_moon = Head(hidden=128, width=256, relu=False)  # Li, He, Song 2021, Section 3.2
    assert recipe(local="moon").model.head == of_moon
    assert recipe(local="moon") == recipe(local="moon", model={"cnn_small": {"head": of_moon}})
    assert recipe(local="moon", model=SMALL).model.head == Head(**HEAD)
    assert recipe(local="fedavg").model.head is None

    several = {"architectures": ["cnn_small", plain, plain], "model": "cnn_small"}
    shared = recipe(**HEADS | several)
    assert {model.head for model in models_of(shared)} == {Head()}  # of Fed-ET


@pytest.mark.parametrize(
    ("models", "where"),
    [
        ({"model": "logistic_regression"}, "model"),
        ({"architectures": ["cnn_small", "logistic_regression"], "global_models": 2,
          "model": "cnn_small"}, "architectures.1"),
    ],
)  # fmt: skip
def test_an_architecture_that_takes_no_head_is_refused(models, where):
    assert fault(local="moon", **models) == (
        f"here: local = moon: needs a model with a head, not {where} = logistic_regression, "
        "which takes none"
    )


# --- faults of recipes ----------------------------------------------------------------------------


def test_methods_of_the_family_are_valid():
    assert recipe(**FEDET).head_sharing
    assert recipe(**DSFL).global_trainer.name == "designated"
    assert recipe(**DIGEST, global_models=2, client_groups="drawn").global_trainer is None
    assert recipe(**DIGEST).ensemble.name == "clients"  # a single group has no groups to draw


HELD_OUT = {"digits": {"held_out": 0}}
NO_CLIENTS = "local = digest: needs ensemble = clients, not ensemble = "
DRAWN = "bayesian, whose members are drawn as logits"
ONE_GROUP = (
    "local = digest: needs client_groups = drawn, or a single group that clients train, not "
    "client_groups = by_index"
)
NO_SETTINGS = "local = digest: needs the server's settings, not server = null"
STUDENT = (
    "needs global models that clients go on from, or designated and server_model = true, not local "
    "= digest, whose clients send no weights"
)
WEIGHTS = "needs clients that exchange weights, not local = digest, whose clients send no weights"
SCAFFOLD = (
    "local = scaffold: needs client_groups = by_index, by which a group has as many participants "
    "in every round, not client_groups = drawn, by which their number is drawn"
)
KEPT = "a student of the server, trained by itself"
JUDGED = "client models that are fused in rounds"
LIVE = "teachers in rounds that look at a student's public images"


def unneeded(setting, trait, by):
    """Return the message about a setting of the server where nothing has the trait."""
    return f"server.{setting}: needs {trait}, not {by}"


RECIPE_FAULTS = [
    ({"local": "scaffold", "global_models": 2, "client_groups": "drawn"}, SCAFFOLD),
    (
        {**HEADS, "compression": "stc"},
        "compression = stc: needs global models that are the old ones with averaged "
        "changes, not head_sharing = true, which reaches all models in every round",
    ),
    (DIGEST | {"ensemble": None}, NO_CLIENTS + "null"),
    (DIGEST | {"ensemble": "aggregated"}, NO_CLIENTS + "aggregated"),
    (DIGEST | {"ensemble": "bayesian"}, NO_CLIENTS + DRAWN),
    (DIGEST | {"server": None}, NO_SETTINGS),
    (DIGEST | {"data": HELD_OUT}, "data.held_out = 0: public = held_out needs at least 1 sample"),
    (DIGEST | {"global_models": 2}, ONE_GROUP),
    (DSFL | {"client_groups": "by_index"}, ONE_GROUP),
    (DSFL | {"global": "basic"}, f"global = basic: {STUDENT}"),
    (DSFL | {"server_model": False}, f"server_model = false: {STUDENT}"),
    (DIGEST | {"compression": "stc"}, f"compression = stc: {WEIGHTS}"),
    (DIGEST | HEADS, f"head_sharing = true: {WEIGHTS}"),
    *(
        (
            changed | {"server": SERVER | value},
            unneeded(key, trait, "local = digest, whose clients learn from logits"),
        )
        for changed, key, value, trait in [
            (DSFL, "swa", {"swa": {"every": 1}}, KEPT),
            (DSFL, "drop_worst = as_published", {"drop_worst": "as_published"}, JUDGED),
            (DSFL, "early_stopping", {"early_stopping": {"every": 1, "patience": 2}}, KEPT),
            (DIGEST, "labels = 1.0", {"labels": 1.0}, KEPT),
            (DIGEST, "factor_transfer", {"factor_transfer": {}}, LIVE),
            (DIGEST, "moving_average", {"moving_average": {}}, KEPT),
            (DIGEST, "teacher_images = augmented",
             {"augmentation": "flip", "teacher_images": "augmented"}, LIVE),
        ]
    ),
    (
        DIGEST | {"model": {"cnn_small": {"norm": "batch"}}}
        | {"aggregation": {"batch_norm": "local"}},
        f"aggregation.batch_norm = local: {WEIGHTS}",
    ),
]  # fmt: skip

UPPER, LOWER, WIDE = "resnet_upper", "resnet_lower", {"resnet_lower": {"width": 8}}
GKT = {
    **SERVED,
    "local": "gkt",
    "model": UPPER,
    "architectures": [UPPER, LOWER, LOWER],
    "client_groups": "drawn",
    "server": SERVER,
}
PARTS_FAULTS = [
    (
        GKT | {"server_model": False, "model": LOWER, "architectures": [LOWER] * 3},
        "local = gkt: needs server_model = true, a model that no client trains, not server_model = "
        "false",
    ),
    (
        GKT | {"model": "resnet8", "architectures": ["resnet8", LOWER, LOWER]},
        "model = 'resnet8': local = gkt needs one that takes features, resnet_upper",
    ),
    (
        GKT | {"architectures": [UPPER, LOWER, "resnet8"]},
        "architectures: 'resnet8': local = gkt needs models that give features, resnet_lower",
    ),
    (
        GKT | {"architectures": []},
        "model = 'resnet_upper': takes feature maps, and the samples of data = digits are images",
    ),
    (
        GKT | {"architectures": [UPPER, LOWER, WIDE]},
        "architectures: resnet_lower.width = 8: must be the server's, model.width = 16",
    ),
    (
        GKT | {"local": "fedavg"},
        "model = 'resnet_upper': takes feature maps, and the samples of data = digits are images",
    ),
    (
        GKT | {"server": None},
        NO_SETTINGS.replace("digest", "gkt"),
    ),
    *(
        (
            GKT | {"server": SERVER | {key: value}},
            unneeded(
                key if isinstance(value, dict) else f"{key} = {value}",
                trait,
                "local = gkt, whose server learns from clients' features",
            ),
        )
        for key, value, trait in [
            ("early_stopping", {}, KEPT), ("drop_worst", "as_released", JUDGED),
            ("swa", {"every": 1}, KEPT), ("samples_a_round", 5, "rounds of public images"),
            ("augmentation", "flip", "public images"), ("moving_average", {}, KEPT),
            ("buffer", {}, "a student that is trained by itself"), ("labels", 1.0, KEPT),
            ("factor_transfer", {}, LIVE),
        ]
    ),
    (
        GKT | {"ensemble": "clients", "global": "designated"},
        "global = designated: needs a server that learns from an ensemble, not local = gkt, whose "
        "server learns from clients' features",
    ),
    (
        GKT | {"numerics": {"compile": True}},
        "numerics.compile = true: needs losses with compiled code, not local = gkt, whose loss is "
        "its own and has no compiled code",
    ),
    (GKT | {"client_groups": "by_index"}, ONE_GROUP.replace("digest", "gkt")),
    (GKT | {"compression": "stc"},
     f"compression = stc: {WEIGHTS}".replace("digest", "gkt")),
    (
        GKT | {"aggregation": {"batch_norm": "local"}},
        f"aggregation.batch_norm = local: {WEIGHTS}".replace("digest", "gkt"),
    ),
]  # fmt: skip


def test_lower_parts_of_several_depths_go_with_one_upper_part_and_alone():
    deep = {"resnet_lower": {"blocks": 5}}
    assert recipe(**GKT | {"architectures": [UPPER, LOWER, deep]}).local.name == "gkt"
    assert recipe(model=LOWER).local.name == "fedavg"


@pytest.mark.parametrize(("changes", "message"), RECIPE_FAULTS + PARTS_FAULTS)
def test_faults_of_recipes(changes, message):
    assert fault(**changes) == f"here: {message}"


def test_one_shot_has_no_rounds_to_draw_public_samples_for():
    names = {"data", "clients", "partition", "model", "client", "seed"}
    raw = {name: RAW[name] for name in names} | {"distillation": "l1"}
    with pytest.raises(FedstageError) as caught:
        validate(OneShotRecipe, raw | {"server": SERVER | {"samples_a_round": 20}}, "here")
    assert str(caught.value) == (
        "here: server.samples_a_round = 20: needs rounds of public images, not distillation = l1, "
        "in one shot"
    )
