"""What determines a partition, beside the labels."""

from fedstage.config import Fraction, Partition, Positive, Settings


class PartitionSettings(Settings):
    """The part of a training line that says who has which samples."""

    clients: Positive
    partition: Partition
    validation: Fraction
    aggregator_fraction: Fraction = 0.0
    seed: int
