import numpy as np
import pytest

from fedstage.data.datasets.splits import choose_rows
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import TorchvisionData


def settings(**keys):
    return TorchvisionData(name="cifar10", **keys)


def test_train_is_the_first_and_held_out_the_last_of_the_permutation():
    order = numpy_generator(3, "dataset", "train").permutation(50)
    test_order = numpy_generator(3, "dataset", "test").permutation(30)

    rows = choose_rows(
        settings(train_size=12, test_size=4, held_out=9, split_seed=3), train=50, test=30
    )

    assert rows.train.tolist() == sorted(order[:12])
    assert rows.held_out.tolist() == sorted(order[-9:])
    assert rows.test.tolist() == sorted(50 + test_order[:4])


def test_the_servers_own_stand_before_the_held_out_and_take_them_from_training():
    order = numpy_generator(3, "dataset", "train").permutation(50)

    rows = choose_rows(settings(held_out=9, server_validation=6, split_seed=3), 50, 1)

    assert rows.held_out.tolist() == sorted(order[-9:])
    assert rows.server_validation.tolist() == sorted(order[-15:-9])
    assert rows.train.tolist() == sorted(order[:-15])


def test_samples_that_are_there_for_all_are_trained_on_with_and_without_the_servers_own():
    with_own = choose_rows(settings(train_size=20, server_validation=5), 40, 1)
    without = choose_rows(settings(train_size=20), 40, 1)

    assert with_own.train.tolist() == without.train.tolist()
    assert without.server_validation.tolist() == []


def test_held_out_and_train_share_nothing_and_cover_the_training_set():
    rows = choose_rows(settings(held_out=15), 40, 5)

    assert sorted([*rows.train, *rows.held_out]) == list(range(40))
    assert len(rows.held_out) == 15


@pytest.mark.parametrize(("fraction", "size"), [(1.0, 40), (0.5, 20), (0.31, 12), (0.001, 1)])
def test_a_fraction_is_of_what_may_be_trained_on(fraction, size):
    chosen = choose_rows(settings(train_fraction=fraction, held_out=10), 50, 1)
    alike = choose_rows(settings(train_size=size, held_out=10), 50, 1)

    assert chosen.train.tolist() == alike.train.tolist()
    assert len(chosen.train) == size


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"train_size": 11}, r"data\.train_size = 11: at most 10 "),
        ({"train_size": 7, "held_out": 4}, r"data\.train_size = 7: at most 6 .*held_out = 4"),
        ({"test_size": 4}, r"data\.test_size = 4: at most 3 "),
        ({"held_out": 10}, r"data\.held_out = 10: at most 9 "),
        (
            {"held_out": 4, "server_validation": 6},
            r"data\.server_validation = 6: at most 5 .*held_out = 4",
        ),
        (
            {"train_size": 6, "server_validation": 5},
            r"data\.train_size = 6: at most 5 .*server_validation = 5",
        ),
    ],
)
def test_asking_for_more_than_there_is_names_key_value_and_number(keys, message):
    with pytest.raises(FedstageError, match=message):
        choose_rows(settings(**keys), 10, 3)


# --- divisions of all samples ---------------------------------------------------------------------

FED_ET = (7, 1, 2)


def test_a_division_is_of_all_samples_and_its_parts_share_none():
    rows = choose_rows(settings(division=FED_ET), 50_000, 10_000)

    parts = [rows.train, rows.held_out, rows.test]
    assert [len(part) for part in parts] == [42_000, 6_000, 12_000]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(60_000))
    for part in parts:  # each has official training and test samples
        assert 0.8 < (part < 50_000).mean() < 0.87


def test_a_division_cuts_one_permutation_in_the_order_of_its_shares():
    order = numpy_generator(3, "dataset", "division").permutation(23)

    rows = choose_rows(settings(division=(2, 1, 1), split_seed=3), 20, 3)

    # 23 * 2 / 4 and 23 * 3 / 4, rounded down.
    assert rows.train.tolist() == sorted(order[:11])
    assert rows.held_out.tolist() == sorted(order[11:17])
    assert rows.test.tolist() == sorted(order[17:])


def test_sizes_keep_the_first_of_each_part_of_a_division():
    order = numpy_generator(0, "dataset", "division").permutation(100)
    keys = {"division": FED_ET, "server_validation": 5}

    rows = choose_rows(settings(train_size=20, test_size=4, **keys), 80, 20)
    half = choose_rows(settings(train_fraction=0.4, **keys), 80, 20)

    assert rows.train.tolist() == sorted(order[:20])
    assert rows.server_validation.tolist() == sorted(order[65:70])
    assert rows.held_out.tolist() == sorted(order[70:80])
    assert rows.test.tolist() == sorted(order[80:84])
    assert half.train.tolist() == sorted(order[:26])
    whole = choose_rows(settings(**keys), 80, 20)
    parts = [whole.train, whole.server_validation, whole.held_out, whole.test]
    assert sorted(np.concatenate(parts)) == list(range(100))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"train_size": 8}, r"data\.train_size = 8: at most 7 .*7 for training, division = \[7, 1"),
        ({"test_size": 3}, r"data\.test_size = 3: at most 2 \(there are 2 for testing\)"),
        ({"server_validation": 7}, r"data\.server_validation = 7: at most 6 .*division = \[7, 1"),
        (
            {"division": (50, 1, 2)},
            r"data\.division = \[50, 1, 2\]: each share must have a sample, and there are 10",
        ),
    ],
)
def test_more_than_a_division_has_is_told(keys, message):
    with pytest.raises(FedstageError, match=message):
        choose_rows(settings(**{"division": FED_ET, **keys}), 8, 2)
