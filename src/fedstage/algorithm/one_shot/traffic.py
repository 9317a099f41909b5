"""What one client sends and receives in one-shot federated learning, phase by phase, in bytes.

Counted is what a deployment would send until training ends, from the sizes of the artefacts: the
initial model where it is common, the client's own model, label counts or votes, the other clients'
models where clients train an aggregator, and the aggregator in each of its rounds. Where clients'
models differ, the largest count is taken.

With quantisation the server quantises: clients send their models as they trained them, with the
ranges of activations, because these are calibrated on samples that only they have, and receive the
others' quantised models.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.one_shot.aggregator_training import Trained, alone
from fedstage.settings.one_shot import OneShotLine

COUNT = 4  # bytes of a count: int32
RANGE = 8  # bytes of the least and the greatest value of an activation: float32

#: A row a phase, and a row a round of an aggregator's training.
ROUNDS_SCHEMA = pa.schema(
    [
        # "initial_model", "local_model", "activation_ranges", "label_counts", "ensemble", "votes",
        # "round", "validation", or "step" of a server that trains alone.
        ("phase", pa.string()),
        ("round", pa.int32()),  # 0: before the first
        ("participants", pa.int32()),
        ("loss", pa.float64()),  # mean training loss; null where nothing is trained
        ("accuracy", pa.float64()),  # percent of the validation samples; null where not measured
        ("bytes_up", pa.int64()),  # of one participant
        ("bytes_down", pa.int64()),
    ]
)

Row = tuple[str, int, int, float | None, float | None, int, int]


@dataclass(frozen=True)
class Quantised:
    """By member: bytes of the quantised model, and how many activations' ranges it has."""

    models: Sequence[int]
    ranges: Sequence[int]


def traffic(
    line: OneShotLine,
    models: Sequence[int],
    classes: int,
    trained: Trained,
    quantised: Quantised | None = None,
) -> dict[str, list[Any]]:
    """Return the columns of `ROUNDS_SCHEMA`; `models` are the bytes of the trained models."""
    rows = [*_before(line, models, classes, quantised), *_in_rounds(len(models), trained)]
    columns = zip(*rows, strict=True)
    return dict(zip(ROUNDS_SCHEMA.names, map(list, columns), strict=True))


def _before(
    line: OneShotLine, models: Sequence[int], classes: int, quantised: Quantised | None
) -> Iterator[Row]:
    def once(phase: str, up: int, down: int) -> Row:
        return (phase, 0, len(models), None, None, up, down)

    common = line.initialisation == "common"
    yield once("initial_model", 0, max(models) if common else 0)
    yield once("local_model", max(models), 0)
    if quantised is not None:
        yield once("activation_ranges", RANGE * max(quantised.ranges), 0)
    if line.aggregator.name == "weighted":
        yield once("label_counts", COUNT * classes, 0)
    if line.aggregator.fitted and not alone(line.aggregator_training):
        sent = models if quantised is None else quantised.models
        yield once("ensemble", 0, sum(sent) - min(sent))  # each has its own
    if line.aggregator.name == "voting":
        yield once("votes", COUNT * len(models) * classes**2, 0)


def _in_rounds(clients: int, trained: Trained) -> Iterator[Row]:
    aggregator = payload_bytes(trained.parameters)
    for one in trained.rounds:
        number, accuracy = one.number, one.accuracy
        size, phase = (aggregator, "round") if one.participants else (0, "step")
        yield (phase, number, one.participants, one.loss, accuracy, size, size)
        if one.participants and accuracy is not None:  # every client sends right and all samples
            yield ("validation", number, clients, None, accuracy, 2 * COUNT, aggregator)
