"""A plan writes the settings and the source of every job that it may need."""

from dataclasses import replace
from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue, metrics_of
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
    content = load_yaml(REPOSITORY / "config.yaml") | {"targets": TARGETS}
    catalogue = load_catalogue(content, REPOSITORY / "workflow", " ".join(TARGETS))
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
