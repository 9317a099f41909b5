"""What tables and claims are about: axes, cells, scores, seconds and roles."""

from typing import Annotated, Literal, get_args

from pydantic import Field

#: A value of an axis of an experiment's grid.
Axis = str | int | float | bool | None

#: Cells of a table: ``{method: [fedavg, feddf], partition.alpha: 0.1}`` are all with these values.
Cells = dict[str, Axis | Annotated[list[Axis], Field(min_length=1)]]

#: Measured seconds of a round, medians: of a participant's training, or of all jobs of a part.
Seconds = Literal[
    "participant_s",
    "training_s",
    "aggregation_s",
    "logits_s",
    "distillation_s",
    "added_s",
    "round_s",
]

#: What one client moves in a run, in bytes: until training ends, until the round that is best on
#: validation samples, until it is as accurate as another run, upwards in a round on average, and to
#: fetch the ensemble; the first three also as multiples of one model up and one down; and what
#: predicting needs.
Communicated = Literal[
    "bytes",
    "times_one_shot",
    "bytes_to_best",
    "times_one_shot_to_best",
    "bytes_to_reach",
    "times_one_shot_to_reach",
    "bytes_up_a_round",
    "ensemble_bytes",
    "memory_bytes",
]
COMMUNICATED: frozenset[str] = frozenset(get_args(Communicated))

#: Columns of the metrics that are in percent, the more the better.
Score = Literal["top1_accuracy", "balanced_accuracy", "auc"]

#: What a table is about, and its claims: scores, or columns of the table of seconds.
Metric = Literal[Score, Seconds]
SECONDS: frozenset[str] = frozenset(get_args(Seconds))

#: What is evaluated on: the test samples, the same as each client would prepare its own of them, or
#: the training samples that nobody trains on.
Role = Literal["test", "test_own", "validation"]
