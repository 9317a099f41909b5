import pytest
import torch

from fedstage.errors import FedstageError
from fedstage.models.heads import with_maps
from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.randomness import torch_generator
from fedstage.settings.models import Cnn, CnnSmall, LogisticRegression, ResNet, WideResNet

NORMS = ("batch", "group", "none")
MODELS = [
    LogisticRegression(name="logistic_regression"),
    *(CnnSmall(name="cnn_small", norm=norm) for norm in NORMS),
    *(Cnn(name="cnn", norm=norm, channels=(4, 6)) for norm in NORMS),
    *(ResNet(name="resnet8", norm=norm, shortcut=cut) for norm in NORMS for cut in ("A", "B")),
    *(WideResNet(name="wrn16_2", norm=norm) for norm in NORMS),
]
DIGITS = (1, 8, 8)
CIFAR = (3, 32, 32)


def initialised(settings, shape, classes=10):
    model = build(settings, shape, classes)
    initialise(model, torch_generator(0, "models"))
    return model


def images(shape, number):
    return torch.randn(number, *shape, generator=torch_generator(1, "images"))


def parameters(settings):
    return sum(parameter.numel() for parameter in build(settings, CIFAR, 10).parameters())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # He et al. 2016, table 6: 0.27 M, 0.46 M and 0.85 M
        (ResNet(name="resnet20"), 269_722),
        (ResNet(name="resnet20", shortcut="B"), 272_474),
        (ResNet(name="resnet32"), 464_154),
        (ResNet(name="resnet56"), 853_018),
        (ResNet(name="resnet8", shortcut="B"), 78_042),
        # Zagoruyko and Komodakis 2016: 0.69 M
        (WideResNet(name="wrn16_2"), 691_674),
        (LogisticRegression(name="logistic_regression"), 3072 * 10 + 10),
    ],
    ids=str,
)
def test_parameter_counts_are_those_of_the_literature(settings, expected):
    assert parameters(settings) == expected


def test_the_plain_network_has_a_convolution_for_each_of_its_channels():
    model = build(Cnn(name="cnn", channels=(4, 6)), (3, 17, 16), 7)
    shapes = [tuple(each.shape) for each in model.parameters() if each.dim() > 1]
    assert shapes == [(4, 3, 3, 3), (6, 4, 3, 3), (7, 6 * 4 * 4)]
    maps, logits = with_maps(model, images((3, 17, 16), 2))
    assert (maps.shape, logits.shape) == ((2, 6, 8, 8), (2, 7))


@pytest.mark.parametrize("shape", [DIGITS, CIFAR, (3, 9, 13)], ids=str)
@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_images_become_logits(settings, shape):
    logits = initialised(settings, shape, classes=7)(images(shape, 3))
    assert logits.shape == (3, 7)
    assert logits.isfinite().all()


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_gradient_reaches_every_parameter(settings):
    model = initialised(settings, DIGITS)
    labels = torch.arange(20) % 10
    torch.nn.functional.cross_entropy(model(images(DIGITS, 20)), labels).backward()
    unreached = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    assert unreached == []


@pytest.mark.parametrize(
    ("settings", "shape", "smallest"),
    [
        (ResNet(name="resnet20"), (3, 7, 32), 8),
        (WideResNet(name="wrn16_2"), (3, 32, 7), 8),
        (CnnSmall(name="cnn_small"), (1, 3, 4), 4),
    ],
    ids=str,
)
def test_images_too_small_for_the_model_are_refused(settings, shape, smallest):
    with pytest.raises(FedstageError) as caught:
        build(settings, shape, 10)
    assert str(caught.value) == (
        f"model = {settings.name}: images of {shape[1]}x{shape[2]} pixels (shape {list(shape)}): "
        f"needs at least {smallest}x{smallest}"
    )
