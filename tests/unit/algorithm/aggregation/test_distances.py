"""The relative distance of a trained model, computed by hand."""

import pytest
import torch

from fedstage.algorithm.aggregation.averages import relative_distances

BEFORE = {"a": torch.tensor([3.0, 0.0]), "b": torch.tensor([[4.0]])}


def test_it_is_the_norm_of_the_change_over_that_of_the_model_before():
    trained = {"a": torch.tensor([3.0, 2.0]), "b": torch.tensor([[3.0]])}
    assert relative_distances([trained], BEFORE)[0] == pytest.approx(100 * 5**0.5 / 5)


def test_there_is_none_of_a_dropped_update_or_from_a_model_of_zeros():
    zeros = {name: torch.zeros_like(value) for name, value in BEFORE.items()}
    assert relative_distances([{}], BEFORE)[0] is None
    assert relative_distances([BEFORE], zeros)[0] is None
