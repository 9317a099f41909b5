"""Each file of a run is made by one rule, whose command has the words of its job."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.shared.experiments import OF_ALL_STAGES

from fedstage.execution.jobs import job_of
from fedstage.experiments.catalogue import load_catalogue, metrics_of
from fedstage.plan.graph import behind, recipe_file
from fedstage.plan.rules import WILDCARDS, stage_rules
from fedstage.plan.stages import GRAPH
from fedstage.storage.planned import write_recipe
from fedstage.storage.yaml_files import load_yaml

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def load():
    """A function that returns the shipped catalogue of targets, with other settings."""

    def loaded(targets=("quickstart",), **changes):
        content = load_yaml(REPOSITORY / "config.yaml") | {"targets": [*targets]} | changes
        return load_catalogue(content, REPOSITORY / "workflow", " ".join(targets))

    return loaded


@pytest.fixture(scope="module")
def catalogue(load):
    return load(OF_ALL_STAGES)


def jobs_of(catalogue):
    runs = [one for target in catalogue.config.targets for one in every_run(catalogue, target)]
    return behind(metrics_of(run) for run in runs)


def every_run(catalogue, target):
    name, _, scale = target.partition("/")
    return [one for run in catalogue.runs[name, scale or "default"] for one in run.evaluated()]


def pattern(rule, path):
    """Return the expression by which Snakemake matches files with an output."""
    found, seen = re.escape(path).replace(r"\{", "{").replace(r"\}", "}"), set()

    def wildcard(match):
        name = match[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{(WILDCARDS | dict(rule.constraints))[name]})"

    return re.compile(re.sub(r"\{(\w+)\}", wildcard, found))


def test_every_file_is_an_output_of_one_rule_whose_command_makes_it(
    catalogue, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    called = set()
    rules = list(stage_rules(catalogue.folders, by_participant=True))
    outputs = [
        (rule, name, pattern(rule, path)) for rule in rules for name, path in rule.outputs.items()
    ]
    jobs = jobs_of(catalogue)
    for job in jobs:
        for name, file in job.files.items():
            found = [(rule, which, m) for rule, which, one in outputs if (m := one.fullmatch(file))]
            ((rule, which, match),) = found
            assert (rule.stage, which) == (job.stage, name)
            wildcards = SimpleNamespace(items=match.groupdict().items)
            assert rule.folder(wildcards) == job.folder
            assert rule.place(wildcards) == job.place
            config = catalogue.folders[job.folder]
            assert rule.stage.job(config, *job.place).inputs == job.inputs
            if rule.name in called:
                continue
            called.add(rule.name)
            write_recipe(recipe_file(job.folder), config)
            read = SimpleNamespace(recipe=recipe_file(job.folder))
            found = SimpleNamespace(**match.groupdict())
            command = rule.shell.format(input=read, wildcards=found)
            _, _, stage, recipe, *words = shlex.split(command)
            work = job_of(stage, Path(recipe), words)
            assert (work.inputs, work.outputs) == (job.inputs, job.files)
            assert work.log == rule.log.format(**match.groupdict())
    unused = {stage.name for stage in GRAPH} - {job.stage.name for job in jobs}
    assert unused <= {
        "retention", "client_accuracy", "core", "selected_labels", "judged_distillation",
    }  # fmt: skip
