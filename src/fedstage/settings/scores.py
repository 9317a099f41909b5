"""Types of tables and claims: axes, cells, scores, seconds, roles and published counterparts."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from fedstage.settings.base import Settings

#: A value of an axis of an experiment's grid.
Axis = str | int | float | bool | None

#: Cells of a table, by values of axes, such as ``{method: [fedavg, feddf], partition.alpha: 0.1}``.
Cells = dict[str, Axis | Annotated[list[Axis], Field(min_length=1)]]

#: A score to be reached, in percent.
Goal = Annotated[float, Field(gt=0, le=100)]
#: What runs are to reach: the final accuracy of some cells, one accuracy for all, or one for each
#: value of one axis, ``{data: {cifar10: 70, cifar100: 30}}``.
Reach = Cells | Goal | dict[str, dict[str | int | float, Goal]]

#: Median measured seconds of a round: of one participant's training, or of all jobs of a stage.
Seconds = Literal[
    "participant_s",
    "training_s",
    "aggregation_s",
    "logits_s",
    "distillation_s",
    "added_s",
    "round_s",
]

#: Bytes that one client sends and receives in a run: in total, until the round that is best on
#: validation samples, and until the run has reached its goal. Further, the mean upload of a round
#: and the download of the ensemble. The first three are also given as multiples of one model up and
#: one down. Predictions need `memory_bytes`. `params` counts the 32-bit numbers that all clients
#: send and receive.
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
    "params",
    "params_to_reach",
]
COMMUNICATED: frozenset[str] = frozenset(get_args(Communicated))

#: Measures of forgetting in a run: its final accuracy on test samples, and means over its rounds.
Retained = Literal[
    "final_accuracy",
    "forget_score",
    "current",
    "previous",
    "lost",
    "gained",
    "retained",
    "distance",
    "fluctuation",
]
#: Claims may also be about the overlap of what a run and the other methods have learnt.
RETAINED: frozenset[str] = frozenset({*get_args(Retained), "overlap"})

#: Columns of the metrics in percent; higher is better.
Score = Literal["top1_accuracy", "balanced_accuracy", "auc"]

#: The metric of a table and its claims: a score, or a column of the table of seconds.
Metric = Literal[Score, Seconds]
SECONDS: frozenset[str] = frozenset(get_args(Seconds))

#: The evaluated samples: the test samples, the test samples as each client would prepare them, or
#: the training samples set aside for validation.
Role = Literal["test", "test_own", "validation"]


#: Columns of the published table, or keys of its `setting`, with the values to match.
Columns = dict[str, Axis]


class Published(Settings):
    """The published counterpart of a table."""

    paper: str
    """Name of the paper's folder."""
    table: str
    """Name of the published table."""
    metric: str = "top1_accuracy"
    """Metric of the published numbers; by default the metric of the table."""
    where: Columns = {}
    """Columns with the values that all cells match."""
    axes: dict[str, str] = {}
    """Published column that contains the values of an axis; by default `method`, `model`, `dataset`
    and `partition_alpha` for the axes `method`, `model`, `data` and `partition.alpha`.
    """
    match: dict[str, dict[Axis, Columns | None]] = {}
    """Published columns, with the values to match, for each value of an axis; null if the paper has
    no such row.
    """
