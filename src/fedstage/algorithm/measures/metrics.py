"""Columns of metrics and of accuracies by client, which evaluations write and tables read."""

from collections.abc import Sequence
from statistics import stdev

import pyarrow as pa

#: Columns of a metrics file: one row per evaluated round of a run, which is one method, one seed,
#: one cell of the experiment's grid. Accuracies, areas and their standard deviations (n-1) are in
#: percent.
METRICS_SCHEMA = pa.schema(
    [
        # The evaluated round, from 1; for models that are trained without federation, the round
        # that they are compared with.
        pa.field("round", pa.int32(), nullable=False),
        # What was evaluated: "global_model", "clients", "aggregated_2", "each_client",
        # "client_3", "pooled".
        pa.field("evaluated", pa.string(), nullable=False),
        # The data it was evaluated on: "test", "test_own" or "validation".
        pa.field("role", pa.string(), nullable=False),
        # Share of the samples whose class has the highest score; for "each_client" their mean.
        pa.field("top1_accuracy", pa.float64(), nullable=False),
        # Mean over classes of the share of correctly predicted samples; classes without samples do
        # not count. For "each_client" their mean, as in all columns below.
        pa.field("balanced_accuracy", pa.float64(), nullable=False),
        # Area under the ROC curve: of the second class of two, or the mean over classes of each
        # against the rest. Null if a class has no samples or all, or if a logit is not finite.
        pa.field("auc", pa.float64(), nullable=True),
        # Mean cross-entropy per sample, natural logarithm: the negative log-likelihood.
        pa.field("loss", pa.float64(), nullable=False),
        # Expected calibration error in percent. Null if a logit is not finite.
        pa.field("ece", pa.float64(), nullable=True),
        # Of an ensemble: the mean over pairs of members of the share of samples whose predicted
        # classes differ, in percent, null for a single member; and its accuracy less the mean of
        # its members' accuracies, in points. Both are null for what is no ensemble.
        pa.field("disagreement", pa.float64(), nullable=True),
        pa.field("ensemble_gain", pa.float64(), nullable=True),
        # Number of evaluated samples.
        pa.field("samples", pa.int64(), nullable=False),
        # Deviation over client models of the accuracy on the common evaluation set; null where
        # all clients share one model.
        pa.field("client_std", pa.float64(), nullable=True),
        # Mean and deviation over clients of the accuracy on the client's own test samples; null
        # where test samples belong to no client. No deviation where there is one client.
        pa.field("own_test_mean", pa.float64(), nullable=True),
        pa.field("own_test_std", pa.float64(), nullable=True),
        # The same on the client's own class mix, if test samples belong to no client: an estimate
        # by the per-class accuracy, weighted by the client's label histogram.
        pa.field("own_mean", pa.float64(), nullable=True),
        pa.field("own_std", pa.float64(), nullable=True),
        # Training loss of the round's participants in their last epoch, over their samples:
        # whether clients converge. Null without federation, or if none answered.
        pa.field("training_loss", pa.float64(), nullable=True),
        # Bytes that one participant sends and receives in this round; 0 where nothing travels.
        pa.field("bytes_up", pa.int64(), nullable=False),
        pa.field("bytes_down", pa.int64(), nullable=False),
        # Number of participants of this round.
        pa.field("participants", pa.int32(), nullable=False),
    ]
)

#: What an accuracy is measured on: a client's own test samples, its own validation samples, all
#: test samples weighted by the client's own mix of classes, or the test samples of a class.
TEST, VALIDATION, OWN_MIX, CLASS = "test", "validation", "own_mix", "class"

#: One row per client and kind of accuracy, and one per class.
CLIENTS_SCHEMA = pa.schema(
    [
        pa.field("of", pa.string(), nullable=False),
        pa.field("client", pa.int64()),  # null for a class
        pa.field("label", pa.int64()),  # null for a client
        # The number of scored samples; for a mix, of the client's training samples.
        pa.field("samples", pa.int64(), nullable=False),
        # Percent; null for a client without samples, or with a mix that the test samples lack.
        pa.field("accuracy", pa.float64()),
    ]
)


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation (n - 1), or None for fewer than two values."""
    return stdev(values) if len(values) > 1 else None
