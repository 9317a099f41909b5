"""Which files say what travels, what a model weighs, and what a predictor consists of.

No torch here: the Snakefile reads this.
"""

from collections.abc import Iterator
from itertools import product

from fedstage.plan import artefacts
from fedstage.plan.members import member_kinds, parse_sampled
from fedstage.plan.runs import RunLength
from fedstage.plan.sharing import group_slots, local_line, members, quantised_line
from fedstage.settings.ensembles import Evaluated, GlobalModel
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine

AnyLine = Line | LocalLine | OneShotLine


def traffic_files(line: AnyLine, rounds: int) -> list[str]:
    """Return the tables of what travels in training: of every round and group, or phase."""
    if isinstance(line, OneShotLine):
        return [artefacts.aggregator_rounds(line)]
    if isinstance(line, LocalLine):
        return []
    places = product(range(1, rounds + 1), range(line.global_models))
    return [artefacts.participants_table(line, round, group) for round, group in places]


def client_models(line: AnyLine, length: RunLength) -> list[str]:
    """Return the models that travel in one round: the largest is a unit of what a round costs.

    Of clients that train alone, of whom only one may be scored, they are those that are trained.
    """
    if isinstance(line, Line):
        groups = range(line.global_models)
        return [artefacts.aggregated_model(line, length.rounds, group) for group in groups]
    if isinstance(line, OneShotLine):
        return _members_models(line)
    return _of_scored(artefacts.local_models(line), length)


def held_files(line: AnyLine, length: RunLength) -> list[str]:
    """Return what must be held to predict, a file as often as there is something of its size.

    Of clients that train alone it is the models of all, of which each holds one: see `holds_one`.
    """
    if isinstance(line, LocalLine):
        return _of_scored(artefacts.asked_models(line), length)
    if isinstance(line, Line):
        return list(_of_rounds(line, length.rounds, length.evaluate))
    if line.distillation is not None:
        return [artefacts.student_file(line)]
    models = artefacts.asked_models(quantised_line(line))
    return [*(models[client] for client in members(line)), artefacts.aggregator_file(line)]


def holds_one(line: AnyLine) -> bool:
    """Whether a client predicts with one of the files alone."""
    return isinstance(line, LocalLine)


def _of_scored(models: list[str], length: RunLength) -> list[str]:
    """Return those of a model a client whose client is scored: all, or one."""
    client = length.evaluate_client
    return models if client is None else [models[client]]


def _members_models(line: OneShotLine) -> list[str]:
    models = artefacts.local_models(local_line(line))
    return [models[client] for client in members(line)]


def _of_rounds(line: Line, rounds: int, evaluated: Evaluated) -> Iterator[str]:
    """Yield the main model, or for each member of an ensemble a model of its size."""
    if isinstance(evaluated, GlobalModel):
        yield artefacts.global_model(line, rounds, 0)
        return
    places = product(artefacts.member_rounds(rounds, evaluated), range(line.global_models))
    for (round, group), kind in product(places, member_kinds(evaluated)):
        drawn = parse_sampled(kind)
        clients = len(group_slots(line, group)) if kind == "clients" else 1
        for _ in range(drawn.samples if drawn else clients):
            yield artefacts.aggregated_model(line, round, group)


def read_files(line: AnyLine, length: RunLength) -> list[str]:
    """Return all that is read of a line, each file once."""
    read = [
        *traffic_files(line, length.rounds),
        *client_models(line, length),
        *held_files(line, length),
    ]
    return list(dict.fromkeys(read))
