"""A small working folder that stages have written: one round of two groups, taught."""

import os
import shutil
from pathlib import Path

import pytest
from tests.shared.settings import federated

from fedstage.execution.cli import main
from fedstage.plan import data_files
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    distillation,
    global_model,
    local_training,
    logits,
    participants_table,
    updates,
)
from fedstage.plan.training_folder import training_folder
from fedstage.settings.groups import group_participants
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


def stage(name, log, **options):
    """Run a stage by its command, as a rule does."""
    arguments = [name, "--log", f"results/logs/{log}.log"]
    for option, value in options.items():
        if value not in (None, []):
            values = value if isinstance(value, list | tuple) else [value]
            arguments += [f"--{option.replace('_', '-')}", *map(str, values)]
    assert main(arguments) == 0, arguments


def make(recipe):
    data, info = recipe.data, data_files.data_file(recipe.data, "info")
    parts = {part: data_files.data_file(data, part) for part in ("train", "test", "held_out")}
    stage("dataset", "dataset/d", settings=as_json(canonical(data)), **parts, info=info)
    clients, histogram = data_files.clients_table(recipe), data_files.label_histogram(recipe)
    settings = as_json(data_files.clients_table(recipe).job.settings)
    train = parts["train"]
    stage("partition", "partition/p", settings=settings, train=train, output=clients,
          histogram=histogram)  # fmt: skip
    plan = data_files.participation_table(recipe, 1)
    stage("participation", "participation/p", settings=as_json(plan.job.settings), first=1,
          last=100, output=plan)  # fmt: skip
    for group in (0, 1):
        output = data_files.initial_weights(data, recipe.model, recipe.seed, group)
        settings = as_json({"model": canonical(recipe)["model"], "seed": recipe.seed})
        stage("initial_model", f"initial_model/{group}", settings=settings, group=group, info=info,
              output=output)  # fmt: skip
    rounds(recipe)


def rounds(recipe):
    owner = aggregation.job(recipe, 1, 0).config
    for one in dict.fromkeys([recipe, owner]):
        settings, output = as_json(canonical(one)), f"{training_folder(one)}/recipe.yaml"
        stage("recipe", f"recipe/{Path(output).parent.name}", settings=settings, output=output)
    for group in (0, 1):
        for participant in group_participants(owner, group):
            update = updates(owner, 1, group)[
                list(group_participants(owner, group)).index(participant)
            ]
            stage("local_training", f"local_training/{group}-{participant}",
                  **local_training.job(owner, 1, group, participant).inputs, round=1, group=group,
                  participants=[participant], outputs=[update])  # fmt: skip
        stage("aggregation", f"aggregation/{group}", **aggregation.job(owner, 1, group).inputs,
              output=aggregated_model(owner, 1, group),
              participants=participants_table(owner, 1, group),
              new_state=aggregation(owner, 1, group, output="new_state"))  # fmt: skip
        stage("logits", f"logits/{group}",
              **logits.job(owner, 1, group, "aggregated", "held_out").inputs, members="aggregated",
              output=logits(owner, 1, group, "aggregated", "held_out"))  # fmt: skip
    stage("distillation", "distillation/0", **distillation.job(recipe, 1, 0).inputs, round=1,
    group=0,
          output=global_model(recipe, 1, 0))  # fmt: skip


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("small"), Path.cwd()
    try:
        os.chdir(folder)
        make(SMALL)
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
