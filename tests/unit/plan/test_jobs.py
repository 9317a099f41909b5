"""Jobs of a run's rounds, and which jobs each waits for."""

from itertools import product

from tests.shared.recipes import FEDDF, METHODS, recipe

from fedstage.plan.stages import jobs_of

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


def test_every_job_is_there_once_and_waits_only_for_jobs_that_are_there():
    for name in ("fedavg", "feddf", "fedsdd", "scaffold"):
        edges = jobs_of(recipe(**METHODS[name]), 4)
        assert {other for before in edges.values() for other in before} <= edges.keys()
        assert len({job.file for job in edges}) == len(edges)
        assert list(edges) == sorted(edges)
        trains = [(job.round, job.participant) for job in edges if job.stage == "local_training"]
        assert sorted(trains) == list(product(range(1, 5), range(4))), name
