"""What determines a partition, beside the labels."""

from fedstage.settings.base import Fraction, Positive, Settings
from fedstage.settings.partitions import Partition


class PartitionSettings(Settings):
    """The part of a training line that says who has which samples."""

    clients: Positive
    partition: Partition
    validation: Fraction
    aggregator_fraction: Fraction = 0.0
    seed: int
