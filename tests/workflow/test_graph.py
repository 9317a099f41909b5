"""The schedule that follows from the graph of files."""

import json
import re
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest
import yaml

from fedstage.experiments.catalogue import load_catalogue, metrics_of
from fedstage.plan.graph import behind, listed
from fedstage.plan.source import source_of_job
from fedstage.storage.yaml_files import load_yaml

pytestmark = pytest.mark.workflow

WORKFLOW = Path(__file__).parents[2] / "workflow"


def test_only_the_students_group_waits_for_the_server(finished, project):
    """Each file needs the distillations before it, and trains rounds of these participants."""
    alone, student = (
        finished.recipe(method=method).name for method in ("fedavg-K2", "fedavg-K2-designated")
    )

    def planned(recipe, name):
        plan = project.plan(f"results/training/{recipe}/round_0002/{name}.safetensors")
        return plan.jobs["distillation"], plan.trained()

    # Group 1 is not distilled, though fedsdd's round 1 ends in a distillation.
    distilled, trained = planned(alone, "group_1/aggregated")
    assert distilled == 0
    assert [(round_, participant) for round_, participant, _ in trained] == [(1, 1), (2, 1)]
    # The student's group waits for all groups of round 1.
    distilled, trained = planned(student, "group_0/aggregated")
    assert distilled == 1
    assert sorted(pair[:2] for pair in trained) == [(1, 0), (1, 1), (2, 0)]
    # The teacher of round 2 has group 1 of the recipe that is never distilled as its member.
    distilled, trained = planned(student, "group_0/distilled")
    assert distilled == 2
    assert {(round_, owner) for round_, i, owner in trained if i == 1} == {(1, alone), (2, alone)}


def test_a_job_on_another_machine_finds_its_recipe(copy):
    """Call one job as an executor does on a compute node: one target, one allowed rule."""
    recipe = copy.recipe()
    update = recipe / "round_0002/group_0/participant_1.safetensors"
    before = update.read_bytes()
    update.unlink()
    wildcards = f"recipe={recipe.name},round=0002,group=0,participant=1"
    copy.job(f"local_training:{wildcards}", "local_training")
    assert update.read_bytes() == before


def test_no_rule_starts_snakemake_anew():
    """Snakemake runs Python in a rule by calling itself, which takes seconds."""
    for path in (WORKFLOW / "Snakefile", *(WORKFLOW / "rules").glob("*.smk")):
        assert not re.search(r"^ *(run|script|notebook):", path.read_text(), re.MULTILINE), path


def test_what_an_experiment_is_reaches_its_stages_whole(project):
    """A program's argument may have 128 KiB; a definition of some hundred runs has more."""
    title = 'It\'s {input} of \\n %s "$HOME" – ' + "x" * 200_000
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["title"] = title
    path.write_text(yaml.safe_dump(config, allow_unicode=True))
    project.plan()
    described = project.path / "results/descriptions/tiny/default.runs.json"
    assert json.loads(described.read_text())["title"] == title


def test_jobs_read_and_make_what_the_graph_says(finished, monkeypatch):
    """As Snakemake has noted for each output."""
    monkeypatch.chdir(finished.path)
    notes, noted = Path(".snakemake/metadata"), {}
    for path in filter(Path.is_file, notes.rglob("*")):
        name = "".join(part.removeprefix("@") for part in path.relative_to(notes).parts)
        noted[urlsafe_b64decode(name).decode()] = json.loads(path.read_text())["input"]
    runs = load_catalogue(load_yaml(Path("config.yaml")), WORKFLOW, "tiny").runs["tiny", "default"]
    jobs = behind(map(metrics_of, runs))
    assert len({job.stage for job in jobs}) > 7
    for job in jobs:
        read = {file for files in job.inputs.values() for file in listed(files)}
        for name in job.files.keys() - {*job.stage.temporary}:
            assert {*noted[job.files[name]]} == read | {source_of_job(job).file}, job
