import subprocess
import sys

import pytest

from fedstage.models.build import build
from fedstage.models.size import state_size
from fedstage.settings.models import (
    CnnFedEt,
    CnnSmall,
    DeepMil,
    EfficientNet,
    Head,
    LogisticRegression,
    Perceptron,
    ResNet,
    ResNet18,
    ResNetLower,
    ResNetUpper,
    Vgg19,
    WideResNet,
)

NORMS = ("batch", "group", "none")
RESNETS = ("resnet8", "resnet20", "resnet32", "resnet56")
MODELS = [
    LogisticRegression(name="logistic_regression"),
    *(CnnSmall(name="cnn_small", norm=norm) for norm in NORMS),
    CnnSmall(name="cnn_small", norm="batch", width=7, hidden=33),
    *(
        ResNet(name=name, norm=norm, shortcut=shortcut)
        for name in RESNETS
        for norm in NORMS
        for shortcut in ("A", "B")
    ),
    *(WideResNet(name="wrn16_2", norm=norm) for norm in NORMS),
    *(ResNetLower(name="resnet_lower", norm=norm, blocks=2, width=5) for norm in NORMS),
    ResNetLower(name="resnet_lower", blocks=0),
    CnnSmall(name="cnn_small", more_outputs=1),
    ResNet(name="resnet8", more_outputs="features"),
    WideResNet(name="wrn16_2", norm="none", more_outputs="features"),
    CnnSmall(name="cnn_small", more_outputs=2, head=Head()),
    Perceptron(name="mlp"),
    Perceptron(name="mlp", hidden=(5,)),
    *(
        ResNetUpper(name="resnet_upper", norm=norm, shortcut=shortcut, blocks=2, width=5)
        for norm in NORMS
        for shortcut in ("A", "B")
    ),
]
#: Models of images of at least 16 or 32 pixels.
LARGER = [
    CnnFedEt(name="cnn_fed_et"),
    CnnFedEt(name="cnn_fed_et", channels=(3, 5)),
    *(ResNet18(name="resnet18", norm=norm) for norm in NORMS),
    Vgg19(name="vgg19"),
]


@pytest.mark.parametrize("classes", [10, 100])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (3, 9, 15)], ids=str)
@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_closed_form_is_the_size_of_the_built_model(settings, shape, classes):
    state = build(settings, shape, classes).state_dict()
    assert state_size(settings, shape, classes) == sum(value.nbytes for value in state.values())


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 35, 40)], ids=str)
@pytest.mark.parametrize("settings", LARGER, ids=str)
def test_closed_form_of_larger_models(settings, shape):
    state = build(settings, shape, 10).state_dict()
    assert state_size(settings, shape, 10) == sum(value.nbytes for value in state.values())


@pytest.mark.parametrize("shape", [(13,), (1, 8, 8)], ids=str)
def test_closed_form_of_one_output(shape):
    settings = LogisticRegression(name="logistic_regression", outputs=1)
    state = build(settings, shape, 2).state_dict()
    assert state_size(settings, shape, 2) == sum(value.nbytes for value in state.values())


@pytest.mark.parametrize("outputs", [1, None])
@pytest.mark.parametrize("width", [128, 7])
def test_closed_form_of_a_network_of_bags(width, outputs):
    settings = DeepMil(name="deep_mil", width=width, outputs=outputs)
    state = build(settings, (2048,), 2).state_dict()
    assert state_size(settings, (2048,), 2) == sum(value.nbytes for value in state.values())


@pytest.mark.parametrize("classes", [8, 1000])
def test_closed_form_of_efficientnet(classes):
    settings = EfficientNet(name="efficientnet_b0")
    state = build(settings, (3, 200, 200), classes).state_dict()
    assert state_size(settings, (3, 200, 200), classes) == sum(v.nbytes for v in state.values())


def test_size_is_known_without_torch():
    code = "import sys, fedstage.models.size; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
