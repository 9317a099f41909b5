"""What clients and server exchange, learn from, and keep, by the settings of a run."""

from fedstage.protocol import exchange, server, teaching
from fedstage.settings.recipes import Recipe

SERVER = {"steps": 20, "batch_size": 16, "learning_rate": 0.01}
BASE = {
    "data": "digits", "clients": 10, "partition": "iid", "participants": 8, "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05}, "server": SERVER, "seed": 0,
}  # fmt: skip
FEDDF = {"ensemble": "clients", "global": "basic"}
DIGEST = {"local": "digest", "ensemble": "clients"}
SERVED = {"global_models": 3, "server_model": True, "client_groups": "drawn"}
UPPER, LOWER = "resnet_upper", "resnet_lower"
GKT = SERVED | {"local": "gkt", "model": UPPER, "architectures": [UPPER, LOWER, LOWER]}
GEMS = DIGEST | SERVED | {"local": {"digest": {"teacher": "server"}}, "global": "designated",
                          "distillation": "fedgems", "public": "core", "core": {}}  # fmt: skip
STRAGGLERS = {"staleness": {"cyclic": {"delays": [0, 1]}}}
CHANGES = {"aggregation": {"stale": "changes"}}
OWN_STATISTICS = {"aggregation": {"batch_norm": "local"}}
STATE = ("keeps_state", "clients_keep_state")
#: For some settings, which of the predicates below hold.
HOLDS = [
    ({}, "weights_travel"),
    (FEDDF, "weights_travel learns"),
    (DIGEST, "exchanges_logits learns", *STATE),
    (DIGEST | {"local": {"digest": {"cache": {}}}},
     "exchanges_logits learns caches_labels", *STATE),
    (GEMS, "exchanges_logits learns receives_server_logits", *STATE),
    (GKT, "exchanges_features", *STATE),
    (FEDDF | {"generator": "fedftg", "public": "generated"},
     "weights_travel learns generates teaches_live"),
    (FEDDF | {"server": SERVER | {"augmentation": "flip", "teacher_images": "augmented"}},
     "weights_travel learns teaches_live"),
    ({"local": "scaffold"}, "weights_travel", *STATE),
    (STRAGGLERS, "weights_travel is_stale averages_stale"),
    (STRAGGLERS | CHANGES, "weights_travel is_stale averages_stale takes_changes"),
    (STRAGGLERS | CHANGES | {"withdraw_stale": True}, "weights_travel is_stale"),
    (CHANGES | {"staleness": {"cyclic": {"delays": [0]}}}, "weights_travel"),
    (OWN_STATISTICS, "weights_travel"),
    (OWN_STATISTICS | {"model": "resnet8"}, "weights_travel keeps_statistics keeps_parts", *STATE),
    ({"personal": "head"}, "weights_travel keeps_parts", *STATE),
    ({"aggregation": {"server_optimizer": "adam"}}, "weights_travel optimises keeps_state"),
    ({"compression": "stc"}, "weights_travel keeps_changes", *STATE),
]  # fmt: skip
#: By their names, with what they are made of.
NAMED = vars(exchange) | vars(teaching) | vars(server)
PREDICATES = {
    "exchanges_logits", "exchanges_features", "weights_travel", "caches_labels",
    "receives_server_logits", "learns", "generates", "teaches_live",
    "is_stale", "averages_stale", "takes_changes", "keeps_state",
    "clients_keep_state", "optimises", "keeps_changes", "keeps_statistics", "keeps_parts",
}  # fmt: skip


def recipe(**changes):
    return Recipe.model_validate(BASE | changes)


def test_what_holds_for_which_settings():
    for changes, *names in HOLDS:
        one = recipe(**changes)
        expected = set(" ".join(names).split())
        assert expected <= PREDICATES
        assert {name for name in PREDICATES if NAMED[name](one)} == expected, changes


def test_students_are_all_models_the_first_or_the_first_of_each_architecture():
    widths = {"a": 4, "b": 8, "c": 12}
    for names, firsts in (
        ("aaaa", (0,)), ("abab", (0, 1)), ("aabb", (0, 2)), ("abca", (0, 1, 2)), ("a", (0,)),
    ):  # fmt: skip
        models = [{"cnn_small": {"width": widths[name]}} for name in names]
        groups = {"global_models": len(names), "architectures": models, "model": models[0]}
        for trainer, expected in (
            ({"designated": {"main": "per_architecture"}}, firsts),
            ("designated", (0,)),
            ("basic", tuple(range(len(names)))),
            (None, ()),
        ):
            one = recipe(**groups | {"ensemble": "clients", "global": trainer})
            assert teaching.students(one) == expected
