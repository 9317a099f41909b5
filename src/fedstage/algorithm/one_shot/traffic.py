"""What one client sends and receives in one-shot federated learning, phase by phase, in bytes.

Counted is what a deployment would send until training ends, from the sizes of the artefacts: the
initial model where it is common, the client's own model, what is counted once, the other clients'
models where clients go on training an aggregator, and the aggregator in each of its rounds. Where
clients' models differ, it is the most that one of them moves.

With a quantisation the server quantises: clients send their models as they trained them, and the
ranges of activations, because these are calibrated on samples that only they have; it is quantised
models that come back.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fedstage.algorithm.aggregation.averages import payload_bytes
from fedstage.algorithm.one_shot.aggregator_training import Round
from fedstage.settings.aggregators import FITTED_AGGREGATORS
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tensors import Weights

COUNT = 4  # bytes of a number that is counted: int32
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
    """What is quantised, of each member.

    Attributes
    ----------
    models : sequence of int
        Bytes of each member's quantised model.
    ranges : sequence of int
        Activations whose range was calibrated.
    """

    models: Sequence[int]
    ranges: Sequence[int]


def traffic(
    line: OneShotLine,
    models: Sequence[int],
    classes: int,
    parameters: Weights,
    rounds: Iterable[Round],
    quantised: Quantised | None = None,
) -> dict[str, list[Any]]:
    """Return the columns of `ROUNDS_SCHEMA`.

    Parameters
    ----------
    models : sequence of int
        Bytes of each member's model, as it was trained.
    parameters : dict
        The aggregator's.
    quantised : Quantised, optional
        What the others are sent, where that is not the models as they were trained.
    """
    size = payload_bytes(parameters)
    rows = [*_before(line, models, classes, quantised), *_in_rounds(len(models), size, rounds)]
    columns = zip(*rows, strict=True)
    return dict(zip(ROUNDS_SCHEMA.names, map(list, columns), strict=True))


def on_clients(line: OneShotLine) -> bool:
    """Whether clients need all models, to train or to count on their own samples."""
    training = line.aggregator_training
    alone = training is not None and training.name == "proxy"
    return line.aggregator.name in FITTED_AGGREGATORS and not alone


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
    if on_clients(line):
        sent = models if quantised is None else quantised.models
        yield once("ensemble", 0, sum(sent) - min(sent))  # each has its own
    if line.aggregator.name == "voting":
        yield once("votes", COUNT * len(models) * classes**2, 0)


def _in_rounds(clients: int, size: int, rounds: Iterable[Round]) -> Iterator[Row]:
    for one in rounds:
        said = (one.number, one.participants, one.loss, one.accuracy)
        if not one.participants:
            yield ("step", *said, 0, 0)
            continue
        yield ("round", *said, size, size)
        if one.accuracy is not None:  # right and asked samples, of every client
            yield ("validation", one.number, clients, None, one.accuracy, 2 * COUNT, size)
