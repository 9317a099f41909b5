"""The models of Fed-ET, and how many parameters they have beside its Table 6."""

import pytest
import torch

from fedstage.models.loading import build
from fedstage.settings.models import Bert, CnnFedEt, Head, Lstm, ResNet18, ResNetWide, Vgg19

HEAD = Head(hidden=128, width=128)
#: Millions with the representation layer and ten classes, here and in the paper.
SIZES = {
    CnnFedEt(name="cnn_fed_et", head=HEAD): (0.349, 0.4),
    ResNetWide(name="resnet8_wide", norm="none", head=HEAD): (5.169, 5.2),
    ResNet18(name="resnet18", norm="none", head=HEAD): (11.250, 11.5),
    Vgg19(name="vgg19", head=HEAD): (20.108, 20.9),
}


@pytest.mark.parametrize("settings", SIZES, ids=lambda one: one.name)
def test_sizes_beside_those_of_the_paper(settings):
    model = build(settings, (3, 32, 32), 10)
    here, paper = SIZES[settings]
    millions = sum(value.numel() for value in model.parameters()) / 1e6
    assert millions == pytest.approx(here, abs=6e-4)
    assert abs(millions / paper - 1) < 0.13


#: The same of models of texts, with two classes.
OF_TEXTS = [
    (Lstm(name="lstm", head=HEAD), 2.481, 2.5),
    (Bert(name="bert", head=HEAD), 4.419, 4.5),
    (Bert(name="bert", layers=4, width=256, heads=4, hidden=1024, head=HEAD), 11.220, 11.3),
]


@pytest.mark.parametrize(("settings", "here", "paper"), OF_TEXTS, ids=["lstm", "tiny", "mini"])
def test_sizes_of_models_of_texts_beside_those_of_the_paper(settings, here, paper):
    if settings.name == "bert":
        pytest.importorskip("transformers")
    with torch.device("meta"):
        model = build(settings, (256,), 2)
    millions = sum(value.numel() for value in model.parameters()) / 1e6
    assert millions == pytest.approx(here, abs=6e-4)
    assert abs(millions / paper - 1) < 0.02


def test_the_cnn_has_the_units_of_the_paper():
    model = build(CnnFedEt(name="cnn_fed_et"), (3, 32, 32), 10)
    shapes = [tuple(value.shape) for name, value in model.named_parameters() if "weight" in name]
    assert shapes == [
        (64, 3, 5, 5), (64, 64, 5, 5), (120, 1600), (100, 120), (84, 100), (50, 84), (10, 50),
    ]  # fmt: skip
