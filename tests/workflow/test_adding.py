"""One of each kind of part is added to a copy of the package, and a workflow runs with them.

An addition is one implementation file, one settings class and one entry in its union: nothing else
of the package is touched.
"""

import shutil
from dataclasses import dataclass

import pytest
import yaml

from fedstage.plan.syntax import PACKAGE

pytestmark = pytest.mark.workflow


@dataclass(frozen=True)
class Addition:
    """A new part: its module, the file of its settings, the class, and the union that it enters."""

    module: str
    code: str
    settings: str
    declaration: str
    union: tuple[str, str]


ADDITIONS = [
    Addition(
        "algorithm/local_trainers/shrinking.py",
        '''"""Weight decay towards zero, by name."""
from fedstage.algorithm.local_trainers.fedavg import next_state, objective, payload
from fedstage.algorithm.local_trainers.fedavg import prepare, scales, sent_down


def gradient_term(settings, start, state, client):
    def add(parameters):
        for parameter in parameters:
            parameter.grad.add_(parameter.detach(), alpha=settings.rate)
    return add
''',
        "local_training.py",
        '''class Shrinking(LocalTraining):
    name: Literal["shrinking"]
    rate: NonNegative = 0.01
''',
        ("FedAvg | FedProx", "Shrinking | FedAvg | FedProx"),
    ),
    Addition(
        "training/losses/smoothed.py",
        '''"""Cross entropy with smoothed labels."""
from functools import partial

from torch.nn.functional import cross_entropy


def loss(settings, classes, device):
    return partial(cross_entropy, label_smoothing=settings.smoothing)
''',
        "optimisation.py",
        '''class Smoothed(LossOfLabels):
    name: Literal["smoothed"]
    smoothing: NonNegative = 0.1
''',
        ("CrossEntropy | Focal", "CrossEntropy | Focal | Smoothed"),
    ),
    Addition(
        "data/partitions/in_order.py",
        '''"""Samples in their order."""
import numpy as np


def assign(settings, labels, clients, generator, natural):
    return np.array_split(np.arange(len(labels)), clients)
''',
        "partitions.py",
        '''class InOrder(Scheme):
    name: Literal["in_order"]
''',
        ("Iid | Dirichlet", "InOrder | Iid | Dirichlet"),
    ),
    Addition(
        "models/architectures/two_layers.py",
        '''"""Two linear layers."""
from math import prod

from torch import nn


def network(settings, shape, classes):
    layers = nn.Linear(prod(shape), settings.hidden), nn.ReLU()
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(settings.hidden, classes))
''',
        "models.py",
        '''class TwoLayers(Architecture):
    name: Literal["two_layers"]
    hidden: Positive = 8
''',
        ("    CnnSmall\n    | ", "    CnnSmall\n    | TwoLayers\n    | "),
    ),
    Addition(
        "data/datasets/stripes.py",
        '''"""Images of stripes, whose direction is the class."""
import torch

from fedstage.data.datasets.images import Dataset, Images


def load(settings, folder):
    assert folder is None, "not read from a folder"
    generator = torch.Generator().manual_seed(settings.split_seed)
    labels = torch.arange(200) % 2
    pixels = torch.randint(0, 50, (200, 1, 4, 4), dtype=torch.uint8, generator=generator)
    pixels[labels == 0, :, ::2] += 200
    pixels[labels == 1, :, :, ::2] += 200

    def part(first, last):
        return Images(pixels[first:last], labels[first:last])

    return Dataset(part(0, 120), part(120, 160), pixels[160:], part(200, 200), ("rows", "columns"))
''',
        "data.py",
        '''class Stripes(Sized):
    in_folder: ClassVar[bool] = False
    name: Literal["stripes"]
    held_out: Count = 40
''',
        ("Data = ByName[\n    Digits\n", "Data = ByName[\n    Stripes\n    | Digits\n"),
    ),
    Addition(
        "algorithm/ensemble_trainers/favourite.py",
        '''"""One member has a share of its own, the others share the rest."""
import torch


def shares(settings, members):
    count = sum(len(part.samples) for part in members)
    rest = (1 - settings.share) / max(count - 1, 1)
    first = settings.share if count > 1 else 1.0
    return torch.tensor([first, *[rest] * (count - 1)], dtype=torch.float64)
''',
        "ensembles.py",
        '''class Favourite(Ensemble):
    members: ClassVar[tuple[str, ...]] = ("clients",)
    name: Literal["favourite"]
    share: Rate = 0.5
''',
        ("_Ensembles = Clients |", "_Ensembles = Favourite | Clients |"),
    ),
    Addition(
        "algorithm/one_shot/aggregators/highest.py",
        '''"""Of each class the highest logit of any member."""


def parameters(settings, known, generator):
    return {}


def combine(settings, parameters, logits, pixels):
    return logits.max(0).values
''',
        "aggregators.py",
        '''class Highest(AggregationRule):
    name: Literal["highest"]
''',
        ("ByName[Averaging |", "ByName[Highest | Averaging |"),
    ),
]  # fmt: skip

BASE = {
    "data": "stripes",
    "partition": "in_order",
    "model": {"two_layers": {"hidden": 6}},
    "clients": 4,
    "participants": 2,
    "validation": 0.0,
    "rounds": 2,
    "client": {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, "loss": {"smoothed": {}}},
    "server": {"steps": 3, "batch_size": 8, "learning_rate": 0.05},
    "numerics": {"device": "cpu"},
    "seed": 0,
}
METHODS = {
    "shrinking": {"local": {"shrinking": {"rate": 0.1}}},
    "taught": {"local": "shrinking", "ensemble": {"favourite": {"share": 0.7}}, "global": "basic"},
    "scored": {"local": "fedavg", "evaluate": {"favourite": {"share": 0.7}}},
    "highest": {"training": "one_shot", "aggregator": "highest", "rounds": 1},
}


def add(package, addition):
    (package / addition.module).write_text(addition.code)
    path = package / "settings" / addition.settings
    text = path.read_text()
    before, after = addition.union
    assert text.count(before) == 1
    # The class stands before the union that it enters.
    place = text.rindex("\n\n", 0, text.index(before))
    new = f"{text[:place]}\n\n\n{addition.declaration}{text[place:]}".replace(before, after)
    path.write_text(new)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with one more of each kind."""
    copy = tmp_path_factory.mktemp("src") / "fedstage"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for addition in ADDITIONS:
        add(copy, addition)
    return copy


@pytest.fixture
def extended(project, package, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    experiment = {
        "title": "Added parts",
        "base": BASE,
        "methods": METHODS,
        "grid": {"method": list(METHODS)},
        "scales": {"default": {}},
    }
    config = {"targets": ["added"], "experiments": {"added": experiment}}
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    return project


def test_one_file_one_class_and_one_entry_are_all_that_a_new_part_takes(extended, package):
    run = extended.make()
    assert run.jobs["local_training"] > 0
    table = (extended.path / "results/tables/added/default.csv").read_text()
    assert {row.split(",")[0] for row in table.splitlines()[1:]} == set(METHODS)
    assert extended.make().jobs == {}
    # An edit of a part makes anew what chose it, and nothing else.
    path = package / "algorithm/local_trainers/shrinking.py"
    path.write_text(path.read_text().replace("alpha=settings.rate", "alpha=2 * settings.rate"))
    lines = {line for _, _, line in extended.plan().trained()}
    assert lines
    assert all("-shrinking-" in line for line in lines)
