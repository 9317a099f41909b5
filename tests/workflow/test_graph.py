"""The schedule that follows from the graph of files."""

import json
import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.workflow


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
    folder = Path(__file__).parents[2]
    for path in (folder / "Snakefile", *(folder / "workflow/rules").glob("*.smk")):
        assert not re.search(r"^ *(run|script|notebook):", path.read_text(), re.MULTILINE), path


def test_what_an_experiment_is_reaches_its_stages_whole(project):
    """A program's argument may have 128 KiB; a definition of some hundred runs has more."""
    title = 'It\'s {input} of \\n %s "$HOME" – ' + "x" * 200_000
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["title"] = title
    path.write_text(yaml.safe_dump(config, allow_unicode=True))
    names = ["descriptions/tiny/default.runs.json"]
    run = project.make(*(f"results/{name}" for name in names))
    assert dict(run.jobs) == {"description": 1}
    for name in names:
        assert json.loads((project.path / "results" / name).read_text())["title"] == title
