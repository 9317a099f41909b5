"""Participation: the client of each participant of a round."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.storage.tables import load_table

Indices: TypeAlias = npt.NDArray[np.int64]

#: One row per participant of a round, with its index `participant` (from 0), `round` (from 1) and
#: `client`, null if it is absent. It starts from the global model after `base_round`, the round
#: before unless it is stale.
SCHEMA = pa.schema(dict.fromkeys(["round", "participant", "client", "base_round"], pa.int32()))


def draw(clients: int, participants: int, seed: int, round_: int) -> Indices:
    """Draw the clients of a round, [participants], uniformly and without replacement.

    The generator's key is (seed, round), so a round's draw does not depend on other rounds, and
    fewer participants are the first ones of a larger draw. The order is random even if all clients
    participate, because a participant's index decides its group.

    Raises
    ------
    FedstageError
        If there are more participants than clients.
    """
    if participants > clients:
        raise FedstageError(f"participants = {participants}: at most clients = {clients}")
    return numpy_generator(seed, "participation", round_).permutation(clients)[:participants]


def draw_by_samples(samples: Indices, participants: int, seed: int, round_: int) -> Indices:
    """Draw the clients of a round one after the other, in proportion to their samples.

    A client is drawn at most once (Fed-ET, section 3.2). If each client k has an exponentially
    distributed number of rate n_k, client k has the smallest with probability n_k / n, and likewise
    among the clients that are left (Efraimidis and Spirakis 2006). Fewer participants are the first
    ones of a larger draw.

    Parameters
    ----------
    samples : array
        The number of training samples n_k of each client.

    Raises
    ------
    FedstageError
        If fewer clients than `participants` have samples.
    """
    having = int((samples > 0).sum())
    if participants > having:
        raise FedstageError(f"participants = {participants}: only {having} clients have samples")
    generator = numpy_generator(seed, "participation", round_)
    numbers = generator.exponential(size=len(samples))
    with np.errstate(divide="ignore"):
        return np.argsort(numbers / samples)[:participants]


def in_turn(clients: int, participants: int, round_: int) -> Indices:
    """Return the clients of a round, taken in the order of their numbers, cyclically.

    The client of participant i of round t is ((t - 1) R + i) mod `clients`.
    """
    return (np.arange(participants) + (round_ - 1) * participants) % clients


def draw_independently(clients: int, expected: int, seed: int, round_: int) -> list[int | None]:
    """Draw the clients of a round, each independently with probability `expected` / `clients`.

    The drawn clients come first, in random order, followed by None up to a length of `clients`.
    Every set of the same size is equally likely, and consists of the first clients of `draw`.
    """
    generator = numpy_generator(seed, "participation", round_)
    order: list[int | None] = generator.permutation(clients).tolist()
    number = int(generator.binomial(clients, expected / clients))
    return order[:number] + [None] * (clients - number)


def participants_of(
    clients: int, participants: int, seed: int, round_: int, turns: bool = False,
    samples: Indices | None = None,
) -> Indices:  # fmt: skip
    """Return the client of each participant of a round, drawn by samples, in turn or uniformly."""
    if samples is not None:
        return draw_by_samples(samples, participants, seed, round_)
    if turns:
        return in_turn(clients, participants, round_)
    return draw(clients, participants, seed, round_)


def table(
    clients: int, participants: int, seed: int, first: int, last: int,
    samples: Indices | None = None, turns: bool = False,
) -> dict[str, Indices]:  # fmt: skip
    """Return the client of each participant of the rounds `first` to `last`, both included.

    With `samples`, the number of each client's samples, clients are drawn in proportion to these;
    with `turns` they are taken in the order of their numbers. The columns are as in `SCHEMA`,
    without `base_round`.

    Raises
    ------
    FedstageError
        If `last` is below `first`, or as in `draw_by_samples`.
    """
    if last < first:
        raise FedstageError(f"last = {last}: at least first = {first}")
    rounds = np.arange(first, last + 1)
    drawn = [participants_of(clients, participants, seed, int(t), turns, samples) for t in rounds]
    return {
        "round": np.repeat(rounds, participants),
        "participant": np.tile(np.arange(participants), len(rounds)),
        "client": np.concatenate(drawn),
    }


def client_of(path: Path, round_: int, participant: int) -> tuple[int | None, int]:
    """Return a participant's client, None if it is absent, and the round that it starts from."""
    columns = ["round", "participant", "client", "base_round"]
    for row in load_table(path, columns).to_pylist():
        if row["round"] == round_ and row["participant"] == participant:
            return row["client"], row["base_round"]
    raise FedstageError(f"{path}: has no participant {participant} in round {round_}")


# --- groups that clients draw ---------------------------------------------------------------------


def draw_groups(clients: int, groups: int, seed: int) -> Indices:
    """Draw the group of each client, uniformly and independently (Fed-ET, section 4)."""
    return numpy_generator(seed, "client_groups").integers(groups, size=clients)


def by_group(
    participants: Mapping[str, Indices], group_of: Indices, groups: int
) -> dict[str, list[Any]]:
    """Return a table in which each group has as many participants as each round had before.

    The i-th of m participants of a round becomes participant m g + i, for its group g; the other
    groups' i-th participants are absent (None).

    Parameters
    ----------
    participants : mapping
        The columns of `fedstage.data.participation.SCHEMA`.
    group_of : array
        The group of each client, [clients].
    """
    size = 1 + int(participants["participant"].max())
    rounds, row = np.unique(participants["round"], return_inverse=True)
    clients = np.full((len(rounds), groups * size), None)
    place = group_of[participants["client"]] * size + participants["participant"]
    clients[row, place] = participants["client"]
    return {
        "round": np.repeat(rounds, groups * size).tolist(),
        "participant": np.tile(np.arange(groups * size), len(rounds)).tolist(),
        "client": clients.ravel().tolist(),
    }
