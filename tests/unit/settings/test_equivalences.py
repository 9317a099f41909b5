"""Settings that mean the same have one simplest form, and others are left as they are."""

from fedstage.settings.equivalences import simplest
from fedstage.settings.recipes import Recipe

CLIENT = {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = {
    "data": "digits", "clients": 10, "partition": "iid", "participants": 8, "model": "cnn_small",
    "client": CLIENT, "seed": 0,
}  # fmt: skip
TAUGHT = {"ensemble": "clients", "global": "basic", "server": SERVER}
BATCH_NORM = {"model": {"cnn_small": {"norm": "batch"}}}
LOCAL_STATISTICS = {"aggregation": {"batch_norm": "local"}}
RE_ESTIMATE = {"aggregation": {"batch_norm": "re_estimate"}}
SERVED = {"global_models": 3, "server_model": True}
GROUPS = {"global_models": 2}
TWO = GROUPS | {"architectures": ["cnn_small", "logistic_regression"]}
DRAWN = {"client_groups": "drawn"}
UPPER, LOWER = "resnet_upper", "resnet_lower"
GKT = SERVED | DRAWN | {"local": "gkt", "model": UPPER, "architectures": [UPPER, LOWER, LOWER],
                        "server": SERVER}  # fmt: skip
DIGEST = {"local": "digest", "ensemble": "clients", "server": SERVER}
STRAGGLERS = {"staleness": {"cyclic": {"delays": [0, 1]}}}
FEDBUFF = {"aggregation": {"discount": "polynomial", "stale": "changes"}}
START = {"start": "results/training/a/model.safetensors", "start_of": "server"}
DESIGNATED = {"global": "designated"}
PER_ARCHITECTURE = {"global": {"designated": {"main": "per_architecture"}}}
PREVIOUS = {"global": {"designated": {"starts_from": "previous"}}}


def recipe(*changes):
    raw = dict(BASE)
    for change in changes:
        raw |= change
    return Recipe.model_validate(raw)


#: Settings, and those that mean the same and are simpler.
OTHER = {"digits": {"split_seed": 4}}  # public images that are others
SAME = [
    # What nobody learns from, or by.
    ([{"ensemble": "clients", "server": SERVER, "public": OTHER, "distillation": "l1"}], []),
    ([DIGEST | {"local": "fedavg"}], []),
    ([GKT, {"server": SERVER | {"temperature": 2.0, "tau_squared": False, "sharpening": 2.0}}],
     [GKT]),
    ([GKT, {"ensemble": "clients", "distillation": "l1", "public": OTHER}], [GKT]),
    # Groups and architectures.
    ([{"architectures": ["cnn_small"]}], []),
    ([GROUPS, {"architectures": ["cnn_small"] * 2}], [GROUPS]),
    ([GROUPS, {"architectures": ["cnn_small"] * 2}, TAUGHT, PER_ARCHITECTURE],
     [GROUPS, TAUGHT, DESIGNATED]),
    ([DRAWN], []),
    ([GROUPS, {"server_model": True}, DRAWN], [GROUPS, {"server_model": True}]),
    # Running statistics.
    ([LOCAL_STATISTICS], []),
    ([RE_ESTIMATE], []),
    ([RE_ESTIMATE, {"public": OTHER}], []),
    ([BATCH_NORM, LOCAL_STATISTICS, {"public": OTHER}], [BATCH_NORM, LOCAL_STATISTICS]),
    ([{"model": {"resnet8": {"norm": "group"}}}, LOCAL_STATISTICS],
     [{"model": {"resnet8": {"norm": "group"}}}]),
    # Delays.
    ([{"staleness": {"cyclic": {"delays": [0, 0]}}, "withdraw_stale": True}, FEDBUFF], []),
    ([{"staleness": {"random": {"probabilities": [1, 0, 0]}}, "withdraw_stale": True}], []),
    ([FEDBUFF], []),
    ([STRAGGLERS, {"withdraw_stale": True}, FEDBUFF], [STRAGGLERS, {"withdraw_stale": True}]),
    ([{"staleness": {"cyclic": {"delays": [0, 1, 0, 1]}}}], [STRAGGLERS]),
    # Starts.
    ([SERVED, START, {"start": None}], [SERVED]),
    ([SERVED, TAUGHT, PREVIOUS], [SERVED, TAUGHT, DESIGNATED]),
]  # fmt: skip
#: Settings that have no simpler form.
SIMPLEST = [
    [TAUGHT, {"public": OTHER, "distillation": "l1"}],
    [DIGEST],
    [GKT],
    [GROUPS, TAUGHT, {"generator": "fedftg", "public": "generated"}],
    [SERVED, DRAWN],
    [TWO, TAUGHT, PER_ARCHITECTURE],
    [BATCH_NORM, LOCAL_STATISTICS],
    [BATCH_NORM, RE_ESTIMATE, {"public": OTHER}],
    [STRAGGLERS, {"withdraw_stale": True}],
    [STRAGGLERS, FEDBUFF],
    [SERVED, START],
    [GROUPS, TAUGHT, PREVIOUS],
    [SERVED, TAUGHT, {"global": {"basic": {"starts_from": "previous"}}}],
]


def test_settings_that_mean_the_same_have_one_form():
    for longer, shorter in SAME:
        assert recipe(*longer) != recipe(*shorter)
        assert simplest(recipe(*longer)) == recipe(*shorter), longer


def test_settings_that_mean_something_are_kept():
    for changes in (*SIMPLEST, *(shorter for _, shorter in SAME)):
        assert simplest(recipe(*changes)) == recipe(*changes), changes
