"""The source that each file states is one that its readers expect, in every granularity."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue, metrics_of
from fedstage.experiments.descriptions import files_of_rounds
from fedstage.experiments.targets import asked_runs
from fedstage.plan.graph import File, behind, listed
from fedstage.plan.runs import scored, split_target
from fedstage.plan.segment_rules import segment_rules
from fedstage.plan.source import fingerprint_of, sources_of
from fedstage.storage.yaml_files import load_yaml

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[3]
EXPERIMENTS = sorted((REPOSITORY / "workflow").glob("experiments/*.yaml")) + sorted(
    (REPOSITORY / "workflow").glob("papers/*/experiments/*.yaml")
)
TARGETS = ["quickstart", *(
    f"{path.stem}/smoke" for path in EXPERIMENTS if "smoke" in load_yaml(path).get("scales", {})
)]  # fmt: skip


@pytest.fixture(scope="module")
def catalogue():
    """All shipped experiments at their smallest scale."""
    content = load_yaml(REPOSITORY / "config.yaml") | {"targets": TARGETS}
    loaded = load_catalogue(content, REPOSITORY / "workflow", " ".join(TARGETS))
    runs = {key: loaded.runs[key] for key in map(split_target, TARGETS)}
    return replace(loaded, runs=runs)


def read_by(job):
    """Return the files that a job reads, but its settings, which state no source."""
    read = chain(*map(listed, job.inputs.values()))
    return [file for file in read if not file.endswith("/recipe.yaml")]


@pytest.fixture(scope="module")
def jobs(catalogue):
    runs = asked_runs(catalogue, " ".join(TARGETS))
    models = [file for run in runs for file in scored(run.recipe)]
    return behind([*map(metrics_of, runs), *models, *files_of_rounds(catalogue)])


@pytest.fixture(scope="module")
def stated(catalogue, jobs):
    """What files state: the fingerprint of the rule, which finds its settings by the path."""
    rules = {job: job.stage.job(catalogue.folders[job.folder], *job.place) for job in jobs}
    return {str(file): fingerprint_of(rules[job]) for job in jobs for file in job.files.values()}


def test_files_of_stages_state_what_their_readers_expect(jobs, stated):
    assert len(stated) > 1000
    starts = 0
    for job in jobs:
        read = read_by(job)
        allowed = {*sources_of(chain(*map(listed, job.inputs.values()))), fingerprint_of(job)}
        assert {stated[file] for file in read} <= allowed, job
        starts += sum(not isinstance(file, File) for file in read)
    assert starts > 0


@pytest.mark.parametrize("length", [1, 7])
def test_files_of_segments_state_what_their_readers_expect(catalogue, stated, length):
    runs = asked_runs(catalogue, " ".join(TARGETS))
    rules = segment_rules(runs, length, "all", files_of_rounds(catalogue))
    jobs = [job for rule in rules for job in rule.jobs.values()]
    made = {
        str(file): job.source
        for job in jobs
        for one in job.part.jobs()
        for file in one.files.values()
    }
    assert len(made) > 1000
    assert {file: made[file] for file in made.keys() & stated.keys()}.items() <= stated.items()
    every = stated | made
    for job in jobs:
        allowed = {*sources_of(job.reads + job.waits_for), job.source}
        for file in chain.from_iterable(map(read_by, job.part.jobs())):
            assert every[file] in allowed, (job.part.name, file)
