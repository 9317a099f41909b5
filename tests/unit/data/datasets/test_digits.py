import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits as sklearn_digits

from fedstage.data.datasets import load
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Digits


def levels(images):
    """Give back scikit-learn's grey levels 0..16."""
    return torch.round(images.double() * 16 / 255).to(torch.int64).flatten(1).numpy()


def test_shapes_types_and_counts_of_the_default_split():
    data = load(Digits(name="digits"), None)

    assert data.train.images.shape == (1797 - 720, 1, 8, 8)
    assert data.test.images.shape == data.held_out.shape == (360, 1, 8, 8)
    assert data.train.images.dtype == data.held_out.dtype == torch.uint8
    assert data.train.labels.dtype == torch.int64
    assert data.train.clients is None
    assert data.class_names == tuple("0123456789")


def test_parts_are_the_permutation_cut_into_test_held_out_and_train():
    bunch = sklearn_digits()
    order = numpy_generator(4, "dataset", "split").permutation(1797)
    test, held_out, train = order[:100], order[100:150], order[150:]

    data = load(Digits(name="digits", test=100, held_out=50, split_seed=4), None)

    assert np.array_equal(levels(data.test.images), bunch.data[test])
    assert np.array_equal(levels(data.held_out), bunch.data[held_out])
    assert np.array_equal(levels(data.train.images), bunch.data[train])
    assert np.array_equal(data.test.labels, bunch.target[test])
    assert np.array_equal(data.train.labels, bunch.target[train])


def test_the_servers_own_images_come_after_the_public_ones():
    bunch = sklearn_digits()
    order = numpy_generator(4, "dataset", "split").permutation(1797)
    server, train = order[150:180], order[180:]

    settings = Digits(name="digits", test=100, held_out=50, server_validation=30, split_seed=4)
    data = load(settings, None)

    assert np.array_equal(levels(data.server_validation.images), bunch.data[server])
    assert np.array_equal(data.server_validation.labels, bunch.target[server])
    assert np.array_equal(levels(data.train.images), bunch.data[train])
    assert len(data.held_out) == 50


def test_grey_levels_are_spread_over_the_whole_range_and_rounded():
    images = load(Digits(name="digits"), None).train.images

    expected = [0, 16, 32, 48, 64, 80, 96, 112, 128, 143, 159, 175, 191, 207, 223, 239, 255]
    assert images.unique().tolist() == expected


@pytest.mark.parametrize(
    ("test", "held_out", "server_validation", "message"),
    [
        (1797, 0, 0, r"test = 1797: at most 1796 "),
        (797, 1000, 0, r"held_out = 1000: at most 999 .*test = 797"),
        (797, 900, 100, r"server_validation = 100: at most 99 .*797, held_out = 900"),
    ],
)
def test_split_that_leaves_no_training_samples_is_refused(
    test, held_out, server_validation, message
):
    settings = {"test": test, "held_out": held_out, "server_validation": server_validation}
    with pytest.raises(FedstageError, match=message):
        load(Digits(name="digits", **settings), None)


def test_reading_the_digits_does_not_import_scikit_learn():
    code = (
        "import sys; from fedstage.data.datasets import load; "
        "from fedstage.settings.data import Digits; load(Digits(name='digits'), None); "
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
