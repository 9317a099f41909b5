"""Runs with what their clients send and receive, for tests of tables and figures of it."""

from fedstage.results.communication.phases import Moved, Phase
from fedstage.results.communication.runs import Reached, RunTraffic

MODEL = 1000  # bytes
ALL = 20 * MODEL  # of ten clients, up and down


def run_of(method, phases, course, *, seed=0, alpha=0.1, **more):
    """Return a run without published numbers; `more` are further fields."""
    fields = {"best": None, "one_shot": 2 * MODEL, "held": MODEL, "memory_mib": None}
    fields |= {"iterative": False, "communicates": bool(phases), "role": "test"}
    settings = {"method": method, "alpha": alpha, "seed": seed}
    return RunTraffic(settings, phases, course, **(fields | more))


def iterative(scores, *, method="fedavg", best=None, **more):
    """Return a run over rounds, each of which takes one model up and one down."""
    after = [Moved(t * MODEL, t * MODEL, t * ALL) for t in range(len(scores) + 1)]
    course = [Reached(t, score, after[t]) for t, score in enumerate(scores, 1)]
    more |= {"best": course[best - 1] if best else None, "iterative": len(scores) > 1}
    phases = [Phase(1, "federated_round", len(scores), after[-1])]
    return run_of(method, phases, course, **more)


def one_shot(score, *, method="fens", **more):
    """Return a run of four members, whose aggregator trains in 50 rounds."""
    phases = [
        Phase(1, "local_model", 0, Moved(MODEL, 0, 10 * MODEL)),
        Phase(1, "ensemble", 0, Moved(0, 4 * MODEL, 40 * MODEL)),
        Phase(1, "round", 50, Moved(500, 500, 10 * MODEL)),
    ]
    moved = sum((phase.moved for phase in phases), Moved())
    more = {"held": 5 * MODEL + 48} | more
    return run_of(method, phases, [Reached(1, score, moved)], **more)


def silent(score, *, method="local", **more):
    """Return a run that sends nothing."""
    return run_of(method, [], [Reached(3, score, Moved())], **more)
