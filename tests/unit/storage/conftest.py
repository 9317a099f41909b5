"""A small working folder that stages have written: one round of two groups, taught."""

import os
import shutil
from pathlib import Path

import pytest
from tests.shared.settings import federated
from tests.shared.stages import make_by_command

from fedstage.plan.training import aggregated_model, global_model
from fedstage.settings.recipes import Recipe

SMALL = Recipe.model_validate(
    federated(
        data={"digits": {"test": 80, "held_out": 30}},
        partition={"dirichlet": {"alpha": 1.0, "min_samples": 8}},
        validation=0.2,
        participants=4,
        model="logistic_regression",
        global_models=2,
        local="scaffold",
        client={"epochs": 1, "batch_size": 500, "learning_rate": 0.05},
        ensemble="aggregated",
        server={"steps": 2, "batch_size": 20, "learning_rate": 0.05},
        numerics={"device": "cpu"},
        seed=5,
        **{"global": "designated"},
    )
)


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("small"), Path.cwd()
    try:
        os.chdir(folder)
        make_by_command(global_model(SMALL, 1, 0), aggregated_model(SMALL, 1, 1))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def small(small_folder, tmp_path, monkeypatch):
    """A copy of it, as the working folder."""
    shutil.copytree(small_folder, tmp_path / "small")
    monkeypatch.chdir(tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture
def small_recipe():
    """The recipe of the small folder."""
    return SMALL
