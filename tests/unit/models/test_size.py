"""The size of a model in closed form is that of its built state, for every architecture."""

import importlib.util
import subprocess
import sys

import pytest

from fedstage.models.build import build
from fedstage.models.size import state_size
from fedstage.settings.models import (
    Bert,
    Cnn,
    CnnFedEt,
    CnnSmall,
    DeepMil,
    DistilBert,
    EfficientNet,
    EmbeddingBag,
    Head,
    LogisticRegression,
    Lstm,
    Perceptron,
    ResNet,
    ResNet18,
    ResNetLower,
    ResNetUpper,
    ResNetWide,
    Vgg19,
    WideResNet,
)

NORMS = ("batch", "group", "none")
HEADS = (Head(), Head(hidden=6, width=4, relu=False))
TEXTS = {"vocabulary": 50, "layers": 2, "heads": 2, "width": 8, "hidden": 16, "positions": 12}
SMALL = [
    LogisticRegression(name="logistic_regression"),
    Perceptron(name="mlp"),
    Perceptron(name="mlp", hidden=(5,)),
    ResNetLower(name="resnet_lower", blocks=0),
    CnnSmall(name="cnn_small", norm="batch", width=7, hidden=33),
    CnnSmall(name="cnn_small", more_outputs=1),
    CnnSmall(name="cnn_small", more_outputs=2, head=Head()),
    ResNet(name="resnet8", more_outputs="features"),
    WideResNet(name="wrn16_2", norm="none", more_outputs="features"),
]
for norm in NORMS:
    SMALL += [
        CnnSmall(name="cnn_small", norm=norm),
        Cnn(name="cnn", norm=norm),
        Cnn(name="cnn", norm=norm, channels=(5, 3)),
        WideResNet(name="wrn16_2", norm=norm),
        ResNetLower(name="resnet_lower", norm=norm, blocks=2, width=5),
    ]
    for cut in ("A", "B"):
        depths = ("resnet8", "resnet20", "resnet32", "resnet56")
        SMALL += [ResNet(name=name, norm=norm, shortcut=cut) for name in depths]
        SMALL += [ResNetUpper(name="resnet_upper", norm=norm, shortcut=cut, blocks=2, width=5)]
HEADED = [
    model.model_copy(update={"head": head})
    for model in (CnnSmall(name="cnn_small", width=4), ResNet(name="resnet8", shortcut="B"))
    for head in HEADS
]
LARGE = [
    CnnFedEt(name="cnn_fed_et"),
    CnnFedEt(name="cnn_fed_et", channels=(3, 5)),
    *(ResNet18(name="resnet18", norm=norm) for norm in NORMS),
    Vgg19(name="vgg19"),
]
WIDE = [ResNetWide(name="resnet8_wide", norm=norm, width=n) for norm in NORMS for n in (3, 8)]
BAGS = [DeepMil(name="deep_mil", width=n, outputs=out) for n in (128, 7) for out in (1, None)]
LSTMS = [
    Lstm(name="lstm", vocabulary=50, embedding=6, hidden=8, layers=layers, head=head)
    for layers, head in ((1, None), (2, None), (3, Head(hidden=7, width=5)))
]
EMBEDDING_BAGS = [
    EmbeddingBag(name="embedding_bag", vocabulary=50, embedding=6, head=head)
    for head in (None, Head(hidden=7, width=5))
]
TRANSFORMERS = [
    kind(name=name, head=head, **TEXTS)
    for kind, name in ((DistilBert, "distilbert"), (Bert, "bert"))
    for head in (None, HEADS[1])
]
EFFICIENTNETS = [EfficientNet(name="efficientnet_b0")]
BINARY = [LogisticRegression(name="logistic_regression", outputs=1)]


@pytest.mark.parametrize(
    ("models", "shapes", "numbers"),
    [
        (SMALL, [(1, 8, 8), (3, 32, 32), (3, 9, 15)], (10, 100)),
        (HEADED, [(3, 8, 8)], (5,)),
        (LARGE, [(3, 32, 32), (1, 35, 40)], (10,)),
        (WIDE, [(3, 32, 32), (1, 13, 17), (3, 40, 16)], (7,)),
        (EFFICIENTNETS, [(3, 200, 200)], (8, 1000)),
        (BINARY, [(13,), (1, 8, 8)], (2,)),
        (BAGS, [(2048,)], (2,)),
        (LSTMS, [(10,)], (3,)),
        (EMBEDDING_BAGS, [(10,)], (3,)),
        (TRANSFORMERS, [(10,)], (2, 4)),
    ],
    ids=[
        "small",
        "headed",
        "large",
        "wide",
        "efficientnet",
        "binary",
        "bags",
        "lstm",
        "embedding bags",
        "transformers",
    ],
)
def test_closed_form_is_the_size_of_the_built_model(models, shapes, numbers):
    if models is TRANSFORMERS and importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers, of the extra `text`, is not installed")
    for settings in models:
        for shape in shapes:
            for classes in numbers:
                state = build(settings, shape, classes).state_dict()
                size = sum(value.nbytes for value in state.values())
                assert state_size(settings, shape, classes) == size, (settings, shape, classes)


def test_size_is_known_without_torch():
    code = "import sys, fedstage.models.size; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
