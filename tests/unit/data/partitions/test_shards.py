import numpy as np
import pytest

from fedstage.data.partitions.schemes import assign
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Shards


def assigned(labels, clients, per_client, seed=0):
    settings = Shards(name="shards", classes_per_client=per_client)
    return assign(settings, labels, clients, np.random.default_rng(seed), None)


@pytest.mark.parametrize("per_client", [1, 2, 5])
def test_client_has_at_most_as_many_classes_as_shards_when_shards_divide_classes(per_client):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 60))
    held = [np.unique(labels[own]) for own in assigned(labels, 20, per_client)]
    assert max(len(classes) for classes in held) <= per_client
    assert max(len(classes) for classes in held) == per_client


def test_samples_of_a_class_are_shuffled_before_the_cut():
    labels = np.zeros(1000, dtype=np.int64)
    first = assigned(labels, 2, 1)[0]
    # 500 of 1,000 drawn without replacement: the mean index is 499.5 +- 9.1.
    assert abs(first.mean() - 499.5) < 5 * 9.2


def test_sizes_are_nearly_equal_when_shards_do_not_divide_the_samples():
    labels = np.random.default_rng(1).integers(0, 10, 1007)
    sizes = [len(own) for own in assigned(labels, 20, 3)]
    assert min(sizes) >= 3 * 16  # 60 shards of 16 or 17 samples
    assert max(sizes) <= 3 * 17


def test_more_shards_than_samples():
    with pytest.raises(FedstageError, match=r"classes_per_client = 4: .* 30 samples for 32 shards"):
        assigned(np.arange(30) % 5, 8, 4)
