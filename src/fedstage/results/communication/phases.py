"""What one client sends and receives, phase by phase: sums over the tables that stages wrote.

All numbers are of the mean client: what all participants of a round sent and received, divided by
the clients that there are. Where everybody takes part that is what each one moves.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.plan.sharing import members
from fedstage.results.communication.described import Part
from fedstage.results.communication.files import client_models, held_files, holds_one, traffic_files
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tensors import load_table

#: The phase that all rounds of a federated line are; those of an aggregator are called ``round``.
FEDERATED = "federated_round"
_LENGTH = 8  # a safetensors file starts with the header's length, 8 bytes little endian


@dataclass(frozen=True)
class Phase:
    """What one client moves in a phase.

    Attributes
    ----------
    part : int
        Which of the runs that go on from one another, from 1.
    name : str
        ``initial_model``, ``local_model``, ``round``, ...; ``federated_round``.
    rounds : int
        How many rounds it has; 0 for what happens once.
    up, down : float
        Bytes, of all its rounds.
    """

    part: int
    name: str
    rounds: int
    up: float
    down: float


def phases_of(parts: Sequence[Part]) -> list[Phase]:
    """Return all phases of runs that go on from one another, in their order."""
    return [phase for number, part in enumerate(parts, 1) for phase in _phases(number, part)]


def bytes_by_round(part: Part) -> dict[int, tuple[float, float]]:
    """Return what one client sends and receives in each round of a federated line."""
    line = part.line
    moved: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for path in traffic_files(line, part.length.rounds):
        columns = load_table(path, ["round", "bytes_up", "bytes_down"]).to_pydict()
        for round, up, down in zip(*columns.values(), strict=True):
            moved[round][0] += up
            moved[round][1] += down
    return {
        round: (up / line.clients, down / line.clients)
        for round, (up, down) in sorted(moved.items())
    }


def _phases(number: int, part: Part) -> list[Phase]:
    line = part.line
    if isinstance(line, LocalLine):
        return []
    if isinstance(line, OneShotLine):
        return _one_shot(number, line)
    rounds = bytes_by_round(part).values()
    up, down = (sum(way) for way in zip(*rounds, strict=True))
    return [Phase(number, FEDERATED, len(rounds), up, down)]


def _one_shot(number: int, line: OneShotLine) -> list[Phase]:
    """Return the phases of a one-shot line in which anything travels."""
    (path,) = traffic_files(line, 1)
    clients = len(members(line))
    found: dict[str, list[int]] = {}
    for row in load_table(path).to_pylist():
        phase = found.setdefault(row["phase"], [0, 0, 0])
        phase[0] += row["round"] > 0
        phase[1] += row["bytes_up"] * row["participants"]
        phase[2] += row["bytes_down"] * row["participants"]
    return [
        Phase(number, name, rounds, up / clients, down / clients)
        for name, (rounds, up, down) in found.items()
        if up or down
    ]


# --- sizes ----------------------------------------------------------------------------------------


def model_bytes(part: Part) -> int:
    """Return the bytes of a client's model, the largest where they differ."""
    return max(map(tensor_bytes, client_models(part.line, part.length)))


def one_shot_bytes(part: Part) -> int:
    """Return the least that a client moves in a federated round: one model up and one down."""
    return 2 * model_bytes(part)


def held_bytes(part: Part) -> int:
    """Return the bytes of what must be held to predict: all members and their aggregator, say."""
    sizes = [tensor_bytes(path) for path in held_files(part.line, part.length)]
    return max(sizes) if holds_one(part.line) else sum(sizes)


def tensor_bytes(path: str) -> int:
    """Return the bytes of the tensors in a file, as they are stored; only its header is read.

    Raises
    ------
    FedstageError
        If the file is missing, or no safetensors file.
    """
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
            header = json.loads(file.read(length))
        spans = [entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"]
    except FileNotFoundError:
        raise FedstageError(f"{path}: no such file") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError):
        raise FedstageError(f"{path}: no safetensors file, its header cannot be read") from None
    return sum(end - start for start, end in spans)


def total(phases: Iterable[Phase]) -> tuple[float, float]:
    """Return the bytes that one client sends and receives in phases together."""
    every = list(phases)
    return sum(phase.up for phase in every), sum(phase.down for phase in every)


# --- until a round --------------------------------------------------------------------------------


def bytes_until(phases: Sequence[Phase], parts: Sequence[Part]) -> dict[int, tuple[float, float]]:
    """Return what one client has sent and received by the end of each round of the last line.

    A line without rounds has one, at whose end everything has travelled.
    """
    before = [phase for phase in phases if phase.part < len(parts)]
    up, down = total(before)
    last = parts[-1]
    if not isinstance(last.line, Line):
        return {last.length.rounds: total(phases)}
    until = {}
    for round, (sent, received) in bytes_by_round(last).items():
        up, down = up + sent, down + received
        until[round] = (up, down)
    return until
