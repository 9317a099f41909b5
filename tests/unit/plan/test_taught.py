"""Which global models are taught, when, and what that reaches."""

from tests.shared import recipes
from tests.shared.recipes import (
    AWAY,
    DESIGNATED,
    DSFL,
    FEDDF,
    GEMS,
    GENERATED,
    GKT,
    HEADED,
    STRAGGLERS,
    after,
    recipe,
)
from tests.shared.settings import SERVER

from fedstage.plan.stages import jobs_of
from fedstage.protocol.rounds import first_distillation, is_distilled, was_taught

SERVED = recipes.SERVED | HEADED | DESIGNATED
FEDSDD = recipes.FEDSDD | after(1, "designated")
BATCH_NORM = {"model": "resnet8", "aggregation": {"batch_norm": "re_estimate"}}

SLOWER = {"server": SERVER | {"learning_rate": 0.5}}
TAUGHT = {"distillation.0": "1234"}
OF_GROUP_0 = {"local_training.0": "234", "aggregation.0": "234", "logits.0": "234"}
OF_CLIENTS = {f"{stage}.{group}": "1234" for stage in ("local_training", "aggregation", "logits")
              for group in (1, 2)}  # fmt: skip
FROM_3 = dict.fromkeys(OF_CLIENTS, "34")
AFTER_WARM_UP = {"distillation.0": "234", "local_training.0": "34", "aggregation.0": "34",
                 "logits.0": "34"}  # fmt: skip
#: Methods, what is changed, and in which of the first four rounds that changes files, by stage and
#: group; it changes no others.
OTHERS = {"public": {"digits": {"split_seed": 4}}}
REACH = [
    ({}, SLOWER, {}),
    ({"ensemble": "clients", "public": "held_out"}, OTHERS, {}),  # nobody learns
    (FEDDF, SLOWER, TAUGHT | OF_GROUP_0),
    (FEDSDD, SLOWER, AFTER_WARM_UP),
    (FEDSDD | {"local": "scaffold"}, SLOWER, AFTER_WARM_UP),
    (SERVED, SLOWER, TAUGHT),
    # Heads travel.
    (SERVED | {"head_sharing": True}, SLOWER,
     TAUGHT | {f"head_sharing.{group}": "1234" for group in range(3)}
     | dict.fromkeys(OF_CLIENTS, "234")),
    # Who is late or away learns later.
    (FEDDF | {"staleness": "never"}, SLOWER, TAUGHT | {"aggregation.0": "234"}),
    (FEDDF | STRAGGLERS, SLOWER,
     TAUGHT | {"aggregation.0": "234", "local_training.0": "34", "logits.0": "34"}),
    (FEDDF | AWAY, SLOWER,
     {"distillation.0": "13", "aggregation.0": "234", "local_training.0": "34", "logits.0": "3"}),
    (FEDDF | GENERATED, {"generator": {"fedftg": {"diversity": 2.0}}},
     TAUGHT | {"local_training.0": "234", "aggregation.0": "234"}),
    # Statistics on public images.
    (BATCH_NORM, OTHERS, {"local_training.0": "1234", "aggregation.0": "1234"}),
    # Clients learn from logits, but not from the server's model; or from labels that are kept.
    (DSFL, SLOWER, OF_CLIENTS | TAUGHT),
    (DSFL, {"global": None}, {}),
    (DSFL | {"local": {"digest": {"cache": {}}}, "global": None}, {"distillation": "l1"},
     OF_CLIENTS | dict.fromkeys(("cached_labels.2", "logits.1", "logits.2"), "123")),
    # Clients learn from the server's model.
    (GEMS | after(1, "designated"), after(2, "designated"),
     {"distillation.0": "34", "selected_labels.0": "34"} | FROM_3),
    # The server learns from features, which needs no teacher.
    (GKT, SLOWER, {"feature_training.0": "1234"}
     | {key: "1234" for key in OF_CLIENTS if not key.startswith("logits")}),
    (GKT, {"server": SERVER | {"temperature": 2.0}}, {}),
]  # fmt: skip


def files_of(config):
    """Return the main file of each job behind the global models after four rounds."""
    return {
        (job.stage, job.group, job.round, job.file.split("/", 3)[3]): job.file
        for job in jobs_of(config, 4)
    }


def test_what_teaches_reaches_what_comes_after_and_nothing_else():
    for method, change, expected in REACH:
        one, other = files_of(recipe(**method)), files_of(recipe(**method | change))
        found = {}
        for key in sorted(one.keys() & other.keys()):
            if one[key] != other[key]:
                stage, group, round_, *_ = key
                found.setdefault(f"{stage}.{group}", {})[str(round_)] = None
        assert {key: "".join(rounds) for key, rounds in found.items()} == expected, method


def rounds_of(holds, config, group):
    return [round_ for round_ in range(8) if holds(config, round_, group)]


def test_who_is_distilled_and_was_taught_in_which_rounds():
    for method, group, distilled, taught in (
        ({}, 0, [], []),
        (FEDDF, 0, range(1, 8), range(1, 8)),
        (FEDSDD, 0, range(2, 8), range(2, 8)),
        (FEDSDD, 1, [], []),
        (FEDDF | AWAY, 0, (1, 3, 5, 7), range(1, 8)),  # a taught model stays so
        (FEDDF | AWAY | after(1), 0, (3, 5, 7), range(3, 8)),
        (FEDDF | {"staleness": "never", "withdraw_stale": True} | after(1), 0, [], []),
        (SERVED | {"head_sharing": True}, 1, [], range(1, 8)),
        (SERVED, 1, [], []),
        (GKT, 0, [], range(1, 8)),
        (GKT, 1, [], []),
    ):
        one = recipe(**method)
        assert rounds_of(is_distilled, one, group) == list(distilled), (method, group)
        assert rounds_of(was_taught, one, group) == list(taught), (method, group)


def test_the_first_distillation_is_after_the_warm_up_in_a_round_to_which_somebody_comes():
    late = FEDDF | after(1) | {"withdraw_stale": True}
    assert first_distillation(recipe()) == 0
    assert first_distillation(recipe(**FEDDF)) == 1
    assert first_distillation(recipe(**late)) == 2
    for staleness, first in (
        ({"cyclic": {"delays": [0, 1]}}, 3),
        ({"cyclic": {"delays": [1, 1, 0]}}, 3),
        ({"cyclic": {"delays": [1]}}, 0),
        ("never", 0),
        ({"random": {"probabilities": [0.0, 1.0]}}, 0),
    ):
        assert first_distillation(recipe(**late, staleness=staleness)) == first
        in_any_case = late | {"withdraw_stale": False}
        assert first_distillation(recipe(**in_any_case, staleness=staleness)) == 2
