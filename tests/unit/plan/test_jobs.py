"""Jobs of a run's rounds, and which jobs each waits for."""

from itertools import product

from tests.shared.recipes import FEDDF, FEDSDD, METHODS, recipe

from fedstage.plan.jobs import jobs_of

#: What papers call stages: train 2.1.3 is participant 3, of group 1, in round 2.
NAMES = {"local_training": "train", "aggregation": "average", "logits": "ask",
         "distillation": "teach"}  # fmt: skip


def short(job):
    participant = f".{job.participant}" if job.stage == "local_training" else ""
    return f"{NAMES[job.stage]} {job.round}.{job.group}{participant}"


def waits_of(last, **changes):
    edges = jobs_of(recipe(**{"participants": 2} | changes), last)
    return {short(job): {short(other) for other in before} for job, before in edges.items()}


def test_the_next_round_waits_for_the_average_or_for_the_student():
    first = {
        "train 1.0.0": set(), "train 1.0.1": set(), "average 1.0": {"train 1.0.0", "train 1.0.1"},
    }  # fmt: skip
    ask = {f"ask {t}.0": {f"train {t}.0.0", f"train {t}.0.1"} for t in (1, 2)}
    teach = {f"teach {t}.0": {f"average {t}.0", f"ask {t}.0"} for t in (1, 2)}
    for method, start, more in (({}, "average 1.0", {}), (FEDDF, "teach 1.0", ask | teach)):
        assert waits_of(2, **method) == first | more | {
            "train 2.0.0": {start},
            "train 2.0.1": {start},
            "average 2.0": {"train 2.0.0", "train 2.0.1", start},
        }


def test_of_fedsdd_only_the_main_group_waits_for_the_server():
    edges, stateful = waits_of(2, **FEDSDD), waits_of(2, **FEDSDD, local="scaffold")
    assert edges["train 2.0.0"] == {"teach 1.0"}
    assert stateful["train 2.0.0"] == {"teach 1.0", "average 1.0"}
    assert edges["train 2.1.1"] == stateful["train 2.1.1"] == {"average 1.1"}
    assert edges["teach 1.0"] == {"average 1.0", "ask 1.0", "ask 1.1"}
    assert edges["teach 2.0"] == {"average 2.0", "ask 1.0", "ask 1.1", "ask 2.0", "ask 2.1"}
    assert edges["ask 2.1"] == {"average 2.1"}
    assert "teach 1.1" not in edges


def test_every_job_is_there_once_and_waits_only_for_jobs_that_are_there():
    for name in ("fedavg", "feddf", "fedsdd", "scaffold"):
        edges = jobs_of(recipe(**METHODS[name]), 4)
        assert {other for before in edges.values() for other in before} <= edges.keys()
        assert len({job.file for job in edges}) == len(edges)
        assert list(edges) == sorted(edges)
        trains = [(job.round, job.participant) for job in edges if job.stage == "local_training"]
        assert sorted(trains) == list(product(range(1, 5), range(4))), name


def test_jobs_behind_earlier_rounds_are_not_followed():
    cut, whole = (jobs_of(recipe(**FEDSDD), 5, first) for first in (5, 1))
    assert cut == {job: before for job, before in whole.items() if job.round == 5}
    assert {other.round for before in cut.values() for other in before} == {4, 5}
