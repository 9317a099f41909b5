"""The files behind communication: tables of traffic, models that travel, and predictors.

No torch here: the Snakefile reads this.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from fedstage.plan import discriminators, one_shot, unfederated
from fedstage.plan.data_files import data_file
from fedstage.plan.members import member_kinds, member_rounds, parse_sampled
from fedstage.plan.one_shot_sharing import members, quantised_line
from fedstage.plan.training import aggregated_model, global_model, participants_table
from fedstage.settings.ensembles import EachClient, Evaluated, GlobalModel, SplitModel
from fedstage.settings.exchange import generates
from fedstage.settings.groups import client_groups, group_slots
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.runs import RunLength

AnyLine = Line | LocalLine | OneShotLine

#: From a round and group to the number of its slots that are not empty.
Filled = Callable[[int, int], int]


def traffic_files(line: AnyLine, rounds: int) -> list[str]:
    """Return the tables of the training's traffic: one a round and group, or one of all phases."""
    if isinstance(line, OneShotLine):
        return list(one_shot.traffic_tables(line))
    if isinstance(line, LocalLine):
        return []
    places = product(range(1, rounds + 1), client_groups(line))
    return [participants_table(line, round, group) for round, group in places]


def before_rounds(line: Line) -> list[str]:
    """Return what each client receives, and what it sends, before the rounds, if anything."""
    if not discriminators.weighs_by_odds(line):
        return []
    return [discriminators.PUBLIC_GENERATOR(line), discriminators.discriminators(line)[0]]


def client_models(line: AnyLine, length: RunLength) -> list[str]:
    """Return the models that travel in one round; the largest is the unit of a round's cost.

    Of clients that train alone these are the trained ones: all, or the one that is scored.
    """
    if isinstance(line, Line):
        groups = client_groups(line)
        return [aggregated_model(line, length.rounds, group) for group in groups]
    if isinstance(line, OneShotLine):
        return one_shot.travelling_models(line)
    return _of_scored(unfederated.local_models(line), length)


def held_files(
    line: AnyLine,
    length: RunLength,
    filled: Filled | None = None,
    chosen: Sequence[int] | None = None,
) -> list[str]:
    """Return the files that prediction needs, a file once for each model of its size.

    Where each client predicts with its own model these are all models: see `holds_one`. `filled` is
    how many slots of a round and group were not empty; by default none was. `chosen` are the
    clients whose models a one-shot ensemble has, by default all that it can have.
    """
    if isinstance(line, LocalLine):
        return _of_scored(unfederated.models_in_precision(line), length)
    if isinstance(line, Line):
        return list(_of_rounds(line, length.rounds, length.evaluate, filled))
    if line.distillation is not None:
        return [one_shot.student_file(line)]
    models = unfederated.models_in_precision(quantised_line(line))
    held = members(line) if chosen is None else chosen
    return [*(models[client] for client in held), one_shot.aggregator_file(line)]


def holds_one(line: AnyLine, length: RunLength) -> bool:
    """Whether a client predicts with one of the files alone."""
    return isinstance(line, LocalLine) or isinstance(length.evaluate, EachClient)


def _of_scored(models: Sequence[str], length: RunLength) -> list[str]:
    """Return the models of the scored clients, which are all or one."""
    client = length.evaluate_client
    return [*models] if client is None else [models[client]]


def _of_rounds(
    line: Line, rounds: int, evaluated: Evaluated, filled: Filled | None
) -> Iterator[str]:
    """Yield the main model, or a model of equal size for each member of an ensemble."""
    if isinstance(evaluated, GlobalModel):
        yield global_model(line, rounds, 0)
        return
    if isinstance(evaluated, SplitModel):  # each client's prediction needs two parts
        first = client_groups(line).start
        yield from (global_model(line, rounds, group) for group in (0, first))
        return
    places = product(member_rounds(rounds, evaluated), client_groups(line))
    for (round, group), kind in product(places, member_kinds(evaluated)):
        drawn = parse_sampled(kind)
        slots = filled(round, group) if filled else len(group_slots(line, group))
        clients = slots if kind == "clients" else 1
        for _ in range(drawn.samples if drawn else clients):
            yield aggregated_model(line, round, group)


def read_files(line: AnyLine, length: RunLength) -> list[str]:
    """Return all these files of a line, each once."""
    tables = traffic_files(line, length.rounds)
    files = [*tables, *client_models(line, length), *held_files(line, length)]
    if isinstance(line, Line):
        files += before_rounds(line)
    if isinstance(line, Line) and generates(line):
        files.append(data_file(line.data, "info"))  # whose classes clients count
    return list(dict.fromkeys(files))
