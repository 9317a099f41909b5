"""Code of a user that draws from torch's, NumPy's and Python's own generators: always the same."""

import pytest
import yaml
from tests.workflow.conftest import tiny_config

pytestmark = pytest.mark.workflow

PLUGIN = '''
"""A model with dropout, a loss with noise, and a rule that shakes models."""

import random
from math import prod
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from fedstage.algorithm.aggregation.averages import average_weights
from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.aggregation import ModelRule
from fedstage.settings.local_training import LocalTraining
from fedstage.settings.models import Architecture
from fedstage.training.passes import forward


class Dropping(Architecture):
    """A perceptron with dropout."""

    name: Literal["dropping"]


def network(settings, shape, classes):
    hidden = nn.Linear(prod(shape), 6), nn.ReLU(), nn.Dropout(0.5)
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(6, classes))


class Noisy(LocalTraining):
    """A loss of noisy logits."""

    own_loss: ClassVar[bool] = True
    name: Literal["noisy"]


class Trainer(LocalTrainer):
    def objective(self, task):
        def of_model(model, samples, labels):
            logits = forward(model, samples, task.numerics)
            own = torch.rand(logits.shape, generator=task.generator)
            noise = own * torch.rand_like(logits) * random.random() * np.random.randn()
            return task.loss(logits + noise, labels)

        return of_model


class Shaken(ModelRule):
    """The average with noise."""

    name: Literal["shaken"]


def combine(settings, models, shares, start):
    mean = average_weights(models, shares)
    return {name: value + 0.01 * torch.rand_like(value) for name, value in mean.items()}
'''


def draw(project, **execution):
    config = tiny_config(
        methods=["fedsdd", "fedavg"],
        model="dropping",
        local="noisy",
        participants=3,
        execution=execution,
    )
    methods = config["experiments"]["tiny"]["methods"]
    methods["fedsdd"] |= {"local": "noisy"}
    methods["fedavg"] = {"local": "noisy", "aggregation": {"rule": "shaken"}}
    (project.path / "drawing.py").write_text(PLUGIN)
    text = yaml.safe_dump(config | {"plugins": ["drawing.py"]})
    (project.path / "config.yaml").write_text(text)
    return project


@pytest.fixture(scope="module")
def expected(new_project):
    project = draw(new_project())
    project.make()
    return project.results()


def test_updates_of_different_clients_and_rounds_differ(expected):
    updates = [content for path, content in expected.items() if "/participant_" in path]
    assert len(set(updates)) == len(updates) == 2 * 2 * 3


@pytest.fixture(scope="module")
def in_segments(new_project):
    project = draw(new_project(), granularity="segment", segment_rounds=2)
    project.make(cores=1)
    return project


def test_the_same_bytes_however_jobs_are_divided(expected, in_segments):
    results = in_segments.results()
    assert {path: results[path] for path in expected if path in results} == {
        path: content for path, content in expected.items() if path in results
    }
    missing = expected.keys() - results.keys()
    assert not [path for path in missing if "/participant_" in path or "/aggregated" in path]


def test_a_file_that_is_restored_has_its_bytes_again(expected, in_segments):
    """One client's of a job of all, and the model of a round; nothing else is made again."""
    draw(in_segments)
    for name in ("participant_1", "distilled"):
        path = f"results/training/*-K2-*/round_0001/group_0/{name}.safetensors"
        (file,) = in_segments.files(path)
        (in_segments.path / file).unlink()
        in_segments.make(str(file))
        assert (in_segments.path / file).read_bytes() == expected[str(file)]
