"""What one client sends and receives in one-shot federated learning, phase by phase, in bytes.

The counts cover what a deployment would send until training ends, by the sizes of the artefacts.
These are the initial model where clients share it, the client's own model, label counts or votes,
the other clients' models where clients train an aggregator, and the aggregator in each of its
rounds. Where clients' models differ, the largest count is used.

Quantisation is done by the server. Clients send their trained models unquantised, together with the
ranges of activations, because these are calibrated on samples that only the clients have. They
receive the quantised models of the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fedstage.algorithm.exchange.traffic import COUNT, payload_bytes
from fedstage.algorithm.one_shot.aggregator_training import Round, Trained
from fedstage.settings.one_shot import OneShotRecipe

RANGE = 8  # bytes of an activation's least and greatest values, float32

#: One row per phase, and one per round of an aggregator's training.
ROUNDS_SCHEMA = pa.schema(
    [
        # "initial_model", "local_model", "selection", "activation_ranges", "label_counts",
        # "ensemble", "votes" or "round".
        ("phase", pa.string()),
        ("round", pa.int32()),  # 0: before the first
        ("participants", pa.int32()),
        ("loss", pa.float64()),  # mean training loss; null where the server does not learn it
        ("bytes_up", pa.int64()),  # of one participant
        ("bytes_down", pa.int64()),
    ]
)

Row = tuple[str, int, int, float | None, int, int]


def before_rounds(
    phases: Mapping[str, tuple[int, int]], participants: int
) -> list[dict[str, int | str | float | None]]:
    """Return the rows of the phases before any round, from each phase's bytes up and down."""
    nothing: dict[str, int | str | float | None] = dict.fromkeys(ROUNDS_SCHEMA.names)
    shared = nothing | {"round": 0, "participants": participants}
    return [
        shared | {"phase": phase, "bytes_up": up, "bytes_down": down}
        for phase, (up, down) in phases.items()
    ]


@dataclass(frozen=True)
class Quantised:
    """By member: bytes of the quantised model, and its number of activation ranges."""

    models: Sequence[int]
    ranges: Sequence[int]


def traffic(
    recipe: OneShotRecipe,
    models: Sequence[int],
    chosen: Sequence[int],
    classes: int,
    trained: Trained,
    quantised: Quantised | None = None,
) -> dict[str, list[Any]]:
    """Return the columns of `ROUNDS_SCHEMA`.

    `models` are the bytes of the trained models, and `chosen` the positions in it of the ensemble's
    members.
    """
    before = _before(recipe, models, chosen, classes, quantised)
    predicting = models if quantised is None else quantised.models
    held = [predicting[position] for position in chosen]
    rows = [*before, *_in_rounds(held, trained)]
    columns = zip(*rows, strict=True)
    return dict(zip(ROUNDS_SCHEMA.names, map(list, columns), strict=True))


def _before(
    recipe: OneShotRecipe,
    models: Sequence[int],
    chosen: Sequence[int],
    classes: int,
    quantised: Quantised | None,
) -> Iterator[Row]:
    def once(phase: str, up: int, down: int, clients: int = len(models)) -> Row:
        return (phase, 0, clients, None, up, down)

    def of_chosen(values: Sequence[int]) -> list[int]:
        return [values[position] for position in chosen]

    members, common = len(chosen), recipe.initialisation == "common"
    yield once("initial_model", 0, max(models) if common else 0)
    if recipe.members is not None and recipe.members.name != "random":
        yield once("selection", COUNT, 0)
    yield once("local_model", max(of_chosen(models)), 0, members)
    if quantised is not None:
        yield once("activation_ranges", RANGE * max(of_chosen(quantised.ranges)), 0, members)
    if recipe.aggregator.name == "weighted":
        yield once("label_counts", COUNT * classes, 0, members)
    training = recipe.aggregator_training
    fetched = recipe.aggregator.trained and training is not None and training.fetches
    if recipe.aggregator.fitted and not fetched:
        sent = of_chosen(models if quantised is None else quantised.models)
        own = min(sent) if members == len(models) else 0  # members have their own
        yield once("ensemble", 0, sum(sent) - own)
    if recipe.aggregator.name == "voting":
        yield once("votes", COUNT * members * classes**2, 0)


def _in_rounds(members: Sequence[int], trained: Trained) -> Iterator[Row]:
    aggregator = payload_bytes(trained.parameters)
    for row in trained.rounds:
        sizes = (aggregator, aggregator) if row.sampled is None else _of_some(row, members)
        if row.messages is not None:
            sizes = (row.messages[0], aggregator + row.messages[1])
        yield ("round", row.number, row.participants, row.loss, *sizes)


def _of_some(row: Round, members: Sequence[int]) -> tuple[int, int]:
    """Return the mean bytes that a participant sends and receives in a round of some members."""
    assert row.sampled is not None, "in other rounds the aggregator travels"
    numbers = COUNT * row.sampled.coordinates
    models = sum(count * members[position] for position, count in row.sampled.fetched.items())
    return round(numbers / row.participants), round((numbers + models) / row.participants)
