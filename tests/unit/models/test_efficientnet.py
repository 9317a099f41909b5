import pytest

from fedstage.errors import FedstageError
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import EfficientNet

SETTINGS = EfficientNet(name="efficientnet_b0")


@pytest.fixture(scope="module")
def model():
    built = build(SETTINGS, (3, 32, 32), 8)
    initialise(built, torch_generator(0, "weights"))
    return built


def test_parameters_are_those_of_the_paper(model):
    # 5.3 M with the 1,000 classes of ImageNet.
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert parameters + 1281 * (1000 - 8) == 5_288_548


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 32, 32), "images of 1 channels: needs 3"),
        ((3, 31, 64), "images of 31x64 pixels .*: needs at least 32x32"),
    ],
)
def test_images_must_be_large_and_in_colour(shape, message):
    with pytest.raises(FedstageError, match=message):
        build(SETTINGS, shape, 8)
