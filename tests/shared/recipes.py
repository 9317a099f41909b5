"""Small recipes of rounds: a base that tests of the plan change, and methods of all kinds."""

from tests.shared.settings import SERVER, distilled

from fedstage.settings.recipes import Recipe

BASE = distilled(
    data={"digits": {"held_out": 40, "server_validation": 20}},
    clients=8,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=4,
)

# --- parts of methods -----------------------------------------------------------------------------

BASIC, DESIGNATED = ({"ensemble": "clients", "global": name} for name in ("basic", "designated"))
FEDDF = BASIC
FEDSDD = {"global_models": 2, "ensemble": {"aggregated": {"checkpoints": 2}},
          "global": "designated"}  # fmt: skip
STRAGGLERS = {"staleness": {"cyclic": {"delays": [0, 1]}}}
AWAY = STRAGGLERS | {"withdraw_stale": True}
RANDOM = {"staleness": {"random": {"probabilities": [0.5, 0.3, 0.2]}}}
HEADED = {"model": {"cnn_small": {"head": {}}}}
SERVED = {"global_models": 3, "server_model": True, "client_groups": "drawn"}
DSFL = SERVED | DESIGNATED | {"local": "digest"}
FEDET = SERVED | DESIGNATED | HEADED | {"head_sharing": True}
GEMS = SERVED | DESIGNATED | {"local": {"digest": {"teacher": "server"}}, "core": {},
                              "distillation": "fedgems", "public": "core"}  # fmt: skip
GKT = SERVED | {"local": "gkt", "model": "resnet_upper",
                "architectures": ["resnet_upper", "resnet_lower", "resnet_lower"]}  # fmt: skip
GENERATED = {"generator": "fedftg", "public": "generated"}
LOCAL_STATISTICS = {"model": {"cnn_small": {"norm": "batch"}},
                    "aggregation": {"batch_norm": "local"}}  # fmt: skip
SECURE = {"aggregation": {"secure": {"threshold": 3, "clip": 0.5, "most_samples": 900}}}


def served_by(**changes):
    """Return settings of the server that differ from the base."""
    return {"server": SERVER | changes}


def after(rounds, trainer="basic", **more):
    """Return a trainer of global models that begins after some rounds."""
    return {"global": {trainer: {"warm_up": rounds} | more}}


JUDGED = served_by(drop_worst="as_released")
LIVE = served_by(augmentation="flip", teacher_images="augmented")
PREVIOUS = {"global": {"basic": {"starts_from": "previous"}}}
TWO, THREE = {"global_models": 2}, {"global_models": 3}
LAST_TWO, LAST_THREE = ({"ensemble": {"aggregated": {"checkpoints": n}}} for n in (2, 3))

#: Methods of all kinds, whose runs of a few rounds have all stages of rounds.
METHODS = {
    "fedavg": {},
    "fedavg of three": THREE,
    "scaffold": {"local": "scaffold"},
    "fedgkd": {"local": {"fedgkd": {"models": 3}}},
    "own statistics": LOCAL_STATISTICS | TWO,
    "statistics on public images": {
        "model": "resnet8", "aggregation": {"batch_norm": "re_estimate"}, "core": {}},
    "secure": SECURE | {"global_models": 1},
    "secure scaffold": SECURE | {"local": "scaffold", "global_models": 1},
    "feddf": BASIC,
    "feddf, judged": BASIC | JUDGED,
    "feddf, with a buffer": BASIC | served_by(buffer={}),
    "feddf, with votes": BASIC | {"local": {"fedgkd": {"models": 3, "teacher": "vote"}}},
    "feddf per architecture": THREE | {
        "architectures": ["cnn_small", "resnet8", "cnn_small"], "ensemble": "clients",
        "global": {"designated": {"main": "per_architecture"}}},
    "feddf, one designated, late, judged": TWO | BASIC | after(2, "designated") | JUDGED,
    "live": TWO | BASIC | LIVE,
    "previous": TWO | BASIC | PREVIOUS,
    "previous, late": TWO | BASIC | after(2, "designated", starts_from="previous")
    | served_by(buffer={}),
    "fedbe": {"ensemble": "bayesian", "global": "basic"},
    "fedbe as released": TWO | {
        "ensemble": {"bayesian": {"variant": "as_released", "samples": 2}}, "global": "designated",
        } | served_by(buffer={}),
    "fedgo": {"ensemble": "odds"} | after(1),
    "fedsdd": THREE | LAST_TWO | {"global": "designated"},
    "fedsdd, live": THREE | LAST_THREE | LIVE | after(1, "designated"),
    "fedsdd with fedgkd": THREE | LAST_TWO | {"local": "fedgkd"} | after(2, "designated"),
    "late": TWO | LAST_TWO | after(3),
    "factors": {
        "model": "resnet8", "global": {"designated": {"starts_from": "previous"}},
        } | TWO | LAST_TWO | served_by(factor_transfer={}),
    "fedftg": BASIC | GENERATED,
    "fedftg of three, late": THREE | BASIC | GENERATED | after(2),
    "fedftg, withdrawn": BASIC | GENERATED | AWAY,
    "fedet": FEDET,
    "heads alone": SERVED | HEADED | {"head_sharing": True},
    "served, late": SERVED | BASIC | after(2),
    "served, withdrawn": SERVED | DESIGNATED | AWAY | {"staleness": {"cyclic": {"delays": [1, 0]}}},
    "ds-fl": DSFL,
    "fedmd": TWO | {"client_groups": "drawn", "local": "digest", "ensemble": "clients"},
    "scarlet": DSFL | {"local": {"digest": {"cache": {"duration": 3}}}} | after(1, "designated"),
    "fedgems": GEMS,
    "fedgems, late": GEMS | after(2, "designated"),
    "fedgkt": GKT,
    "stragglers": BASIC | {"staleness": {"cyclic": {"delays": [0, 1, 3]}}},
    "never in step": BASIC | {"staleness": "never"},
    "withdrawn": BASIC | AWAY,
    "withdrawn, late": TWO | LAST_TWO | AWAY | after(1, "designated"),
    "withdrawn, previous": BASIC | AWAY | PREVIOUS,
    "stale, previous, live": BASIC | PREVIOUS | LIVE | STRAGGLERS | {"participation": "in_turn"},
    "random": TWO | LAST_TWO | RANDOM | {
        "global": "designated", "aggregation": {"server_optimizer": "adam", "stale": "changes"}},
    "random, judged": BASIC | RANDOM | JUDGED,
    "random, live": TWO | LAST_THREE | LIVE | RANDOM | {"global": "designated"},
    "random fedbe": {"ensemble": "bayesian", "global": "basic"} | RANDOM,
    "random fedgkd": BASIC | RANDOM | {"local": {"fedgkd": {"models": 2}}},
}  # fmt: skip


def recipe(**changes):
    """Return a recipe that differs from the base."""
    return Recipe.model_validate(BASE | changes)
