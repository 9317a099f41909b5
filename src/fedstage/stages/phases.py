"""The bytes that one client sends and receives, phase by phase, from the tables of the stages.

Numbers are for the mean client: the bytes of all participants, divided by the number of clients.
With full participation each client moves this much. The bytes of all participants are given as
well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from fedstage.algorithm.exchange.traffic import counts_sent
from fedstage.experiments.runs_file import Part
from fedstage.plan import one_shot
from fedstage.plan.data_files import data_file
from fedstage.plan.traffic import (
    before_rounds,
    client_models,
    held_files,
    holds_one,
    traffic_files,
)
from fedstage.plan.training import participants_table
from fedstage.protocol.one_shot import members
from fedstage.protocol.teaching import generates
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, payload_size

#: The phase of all rounds of a federated recipe; the rounds of an aggregator are called ``round``.
FEDERATED = "federated_round"


@dataclass(frozen=True)
class Moved:
    """The bytes that one client sends and receives, and that all participants move both ways."""

    up: float = 0
    down: float = 0
    everyone: int = 0

    def __add__(self, more: "Moved") -> "Moved":
        return Moved(self.up + more.up, self.down + more.down, self.everyone + more.everyone)


@dataclass(frozen=True)
class Phase:
    """A phase of a run's part, and the bytes that are moved in all of its rounds."""

    name: str  # ``initial_model``, ``local_model``, ``round``, ...; ``federated_round``
    rounds: int  # 0 for a phase outside of rounds
    moved: Moved


def phases_of(parts: Sequence[Part]) -> list[Phase]:
    """Return all phases of a run's parts, in order."""
    return [phase for part in parts for phase in _phases(part)]


def bytes_by_round(part: Part) -> dict[int, Moved]:
    """Return the bytes moved in each round of a federated recipe, 0 if all are absent."""
    recipe = part.recipe
    assert isinstance(recipe, Recipe), "no other recipe has rounds of this kind"
    moved = {round_: [0, 0] for round_ in range(1, part.length.rounds + 1)}
    counted = load_json(data_file(recipe.data, "info"))["classes"] if generates(recipe) else 0
    for path in traffic_files(recipe, part.length.rounds):
        columns = load_table(path, ["round", "bytes_up", "bytes_down"]).to_pydict()
        for round_, up, down in zip(*columns.values(), strict=True):
            moved[round_][0] += up + (counts_sent(recipe, round_, counted) if up else 0)
            moved[round_][1] += down
    return {
        round_: Moved(up / recipe.clients, down / recipe.clients, up + down)
        for round_, (up, down) in sorted(moved.items())
    }


def _phases(part: Part) -> list[Phase]:
    recipe = part.recipe
    if isinstance(recipe, LocalRecipe):
        return []
    if isinstance(recipe, OneShotRecipe):
        return _one_shot(recipe)
    rounds = bytes_by_round(part).values()
    return [*_before_rounds(recipe), Phase(FEDERATED, len(rounds), sum(rounds, Moved()))]


def _before_rounds(recipe: Recipe) -> list[Phase]:
    """Return the phases in which every client receives a generator, and sends a discriminator."""
    if not (files := before_rounds(recipe)):
        return []
    down, up = map(payload_size, files)
    return [
        Phase("generator", 0, Moved(0, down, recipe.clients * down)),
        Phase("discriminator", 0, Moved(up, 0, recipe.clients * up)),
    ]


def _one_shot(recipe: OneShotRecipe) -> list[Phase]:
    """Return the phases of a one-shot recipe in which anything travels."""
    clients = len(members(recipe))
    found: dict[str, list[int]] = {}
    for row in chain.from_iterable(
        load_table(path).to_pylist() for path in traffic_files(recipe, 1)
    ):
        phase = found.setdefault(row["phase"], [0, 0, 0])
        phase[0] += row["round"] > 0
        phase[1] += row["bytes_up"] * row["participants"]
        phase[2] += row["bytes_down"] * row["participants"]
    return [
        Phase(name, rounds, Moved(up / clients, down / clients, up + down))
        for name, (rounds, up, down) in found.items()
        if up or down
    ]


def model_bytes(part: Part) -> int:
    """Return the bytes of the largest of the clients' models, the unit of what travels.

    A client that sends something else counts as if it sent the model that is learnt from it.
    """
    return max(map(payload_size, client_models(part.recipe, part.length)))


def held_bytes(part: Part) -> int:
    """Return the bytes of memory that prediction needs, e.g. of all members and an aggregator."""
    recipe, chosen = part.recipe, None
    if isinstance(recipe, OneShotRecipe) and recipe.members is not None:
        chosen = load_tensors(one_shot.aggregator(recipe))[1]["members"]

    def filled(round_: int, group: int) -> int:
        assert isinstance(recipe, Recipe), "no other recipe has groups"
        return len(load_table(participants_table(recipe, round_, group), ["participant"]))

    sizes = [payload_size(path) for path in held_files(recipe, part.length, filled, chosen)]
    return max(sizes) if holds_one(recipe, part.length) else sum(sizes)


def total(phases: Iterable[Phase]) -> Moved:
    """Return the bytes that are moved in all phases."""
    return sum((phase.moved for phase in phases), Moved())


def bytes_until(parts: Sequence[Part]) -> dict[int, Moved]:
    """Return the bytes that are moved by the end of each round of the last part.

    A part without rounds counts as one round, by whose end everything has travelled.
    """
    *earlier, last = parts
    if not isinstance(last.recipe, Recipe):
        return {last.length.rounds: total(phases_of(parts))}
    before = [*phases_of(earlier), *_before_rounds(last.recipe)]
    rounds = bytes_by_round(last)
    _, *until = accumulate(rounds.values(), initial=total(before))
    return dict(zip(rounds, until, strict=True))
