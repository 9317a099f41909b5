"""A plan writes the settings and the source of every job that it may need."""

import json
import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.shared.experiments import experiments

from fedstage.experiments.catalogue import metrics_of, trained_runs
from fedstage.experiments.descriptions import describe_runs, files_of_rounds
from fedstage.experiments.targets import asked_runs, last_states
from fedstage.plan.graph import behind
from fedstage.plan.runs import settings_of_folders, sources_of, split_target
from fedstage.plan.source import source_of_job
from fedstage.storage.yaml_files import load_yaml

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
EXPERIMENTS = sorted((REPOSITORY / "workflow").glob("experiments/*.yaml")) + sorted(
    (REPOSITORY / "workflow").glob("papers/*/experiments/*.yaml")
)
TARGETS = ["quickstart/default", *(
    f"{path.stem}/smoke" for path in EXPERIMENTS if "smoke" in load_yaml(path).get("scales", {})
)]  # fmt: skip


def named(described):
    """Yield the files that the description of a run names."""
    if isinstance(described, dict | list):
        for part in described.values() if isinstance(described, dict) else described:
            yield from named(part)
    elif isinstance(described, str):
        yield described


def test_a_plan_has_the_settings_and_source_of_all_jobs_behind_files_that_it_may_make():
    """Of all shipped experiments, each at its smallest scale."""
    catalogue, _ = experiments()
    asked = [*map(split_target, TARGETS)]
    catalogue = replace(catalogue, runs={at: catalogue.runs[at] for at in asked})
    runs = asked_runs(catalogue, " ".join(TARGETS))
    descriptions = (describe_runs(catalogue, *at) for at in asked)
    states = (state for run in runs for state in last_states(run, lambda file: False))
    files = [*map(metrics_of, runs), *files_of_rounds(catalogue), *states, *named([*descriptions])]
    jobs = behind(files)
    assert len(jobs) > 1000
    folders = settings_of_folders([run.recipe for run in runs])
    sources = {source for run in runs for source in sources_of(run)}
    for job in jobs:
        assert folders[job.folder] == job.config
        assert source_of_job(job) in sources, job


def reached(targets):
    """Return the stages and the optional modules behind targets."""
    catalogue, _ = experiments()
    runs = [run for target in targets for run in trained_runs(catalogue, target)]
    sources = {source_of_job(job) for job in behind(map(metrics_of, runs))}
    return {name for source in sources for name in (source.stage, *source.chosen)}


def test_ci_runs_all_that_any_shipped_experiment_reaches():
    """Each stage and each module that an experiment at its smallest scale may choose."""
    (patterns,) = re.findall(r"tables='(.*)'", (REPOSITORY / ".ci/run").read_text())
    chosen = [
        target
        for target in TARGETS
        if any(fnmatch(target, pattern) for pattern in json.loads(patterns))
    ]
    assert len(chosen) < len(TARGETS) / 2
    assert reached(TARGETS) == reached(chosen)
