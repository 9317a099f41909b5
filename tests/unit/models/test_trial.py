"""What is found out about a plugin's model before it is trained."""

import json

import pytest
from tests.shared.plugins import loaded
from tests.shared.stages import initial_model

from fedstage.errors import FedstageError
from fedstage.storage.files import save_json
from fedstage.storage.tensors import load_tensors

MODEL = """
from math import prod
from typing import ClassVar, Literal

import torch
from torch import nn

from fedstage.settings.models import KIND


class TinyNet(KIND):
    samples: ClassVar[tuple[str, ...]] = ("SAMPLES",)
    name: Literal["tinynet"]


class Drawing(nn.Module):
    def forward(self, x):
        torch.rand(1)
        return x


class Pair(nn.Module):
    def forward(self, x):
        return x, x


def network(settings, shape, classes):
    return nn.Sequential(LAYERS)
"""
IMAGES = {"shape": [1, 8, 8], "classes": 10}


@pytest.fixture
def draw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def draw(layers, info, kind="Headed", samples="images", **settings):
        code = MODEL.replace("LAYERS", layers).replace("KIND", kind).replace("SAMPLES", samples)
        save_json(tmp_path / "info.json", {"mean": [], "std": [], **info})
        chosen = {"model": {"name": "tinynet", **settings}, "seed": 0}
        output = tmp_path / "model.safetensors"
        output.unlink(missing_ok=True)
        with loaded("mine/tinynet.py", code):
            initial_model(
                settings=json.dumps(chosen), group=0, info=tmp_path / "info.json", output=output
            )
        return load_tensors(output)[0]

    return draw


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        ("nn.Flatten(), nn.Linear(64, classes + 1)", "output [n, 11], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), nn.Flatten(0)", "output [20], must be [n, 10]"),
        ("nn.Conv2d(1, classes, 3)", "output [n, 10, 6, 6], must be [n, 10]"),
        ("nn.Flatten(), nn.Linear(64, classes), Pair()", "output tuple, must be a tensor"),
        (
            "nn.Flatten(), nn.Linear(65, classes)",
            "with samples of shape [1, 8, 8]: RuntimeError: mat1 and mat2 shapes cannot be "
            "multiplied (2x64 and 65x10)",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_refused_by_its_name_and_file(draw, layers, fault):
    with pytest.raises(FedstageError) as caught:
        draw(layers, IMAGES)
    assert str(caught.value) == f"mine/tinynet.py: tinynet: {fault}"


@pytest.mark.parametrize(
    ("samples", "shape", "layers"),
    [
        ("features", [5], "nn.Linear(5, classes)"),
        ("tokens", [7], "nn.Embedding(9, 4), nn.Flatten(), nn.Linear(28, classes)"),
        ("bags", [5], "nn.Flatten(), nn.Linear(6, classes)"),
        ("feature maps", [1, 8, 8], "nn.Flatten(), nn.Linear(16 * 64, classes)"),
    ],
)
def test_samples_of_each_kind_are_tried(draw, samples, shape, layers):
    kind = "Upper" if samples == "feature maps" else "Architecture"
    info = {"shape": shape, "classes": 3}
    with pytest.raises(FedstageError, match=r"tinynet: output \[n, 4\], must be \[n, 3\]"):
        draw(layers.replace("classes", "classes + 1"), info, kind, samples)
    assert draw(layers, info, kind, samples)
