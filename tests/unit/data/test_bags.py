import pytest
import torch

from fedstage.data.bags import Bags
from fedstage.randomness import torch_generator
from fedstage.training.images import augment, draw, normalise

SIZES = [3, 1, 4, 2]


@pytest.fixture
def bags():
    """Four bags of instances with two features, all different from 0."""
    starts = torch.tensor([0, *SIZES]).cumsum(0)
    return Bags(torch.arange(1.0, 21.0).view(10, 2), starts)


def instances(bags, number):
    return bags.instances[bags.starts[number] : bags.starts[number + 1]].tolist()


def test_bags_have_the_length_and_shape_of_samples(bags):
    assert len(bags) == 4
    assert bags.shape == (4, 2)
    assert bags.sizes.tolist() == SIZES


@pytest.mark.parametrize("index", [[2], [3, 0], [1, 1, 2], [0, 1, 2, 3], []], ids=str)
def test_bags_are_taken_by_their_numbers(bags, index):
    taken = bags[torch.tensor(index, dtype=torch.int64)]
    assert len(taken) == len(index)
    assert [instances(taken, i) for i in range(len(index))] == [instances(bags, i) for i in index]


def test_padding_is_told_from_instances_by_the_first_column(bags):
    padded = bags[torch.tensor([1, 2])].padded()
    assert padded.shape == (2, 4, 3)
    assert padded[:, :, 0].tolist() == [[1, 0, 0, 0], [1, 1, 1, 1]]
    assert padded[0, :1, 1:].tolist() == instances(bags, 1)
    assert padded[0, 1:].eq(0).all()
    assert padded[1, :, 1:].tolist() == instances(bags, 2)


def test_bags_go_into_the_model_padded_and_are_not_augmented(bags):
    assert augment(bags, draw("none", len(bags), torch_generator(0, "augmentation"))) is bags
    assert normalise(bags, {"mean": [], "std": []}).equal(bags.padded())
