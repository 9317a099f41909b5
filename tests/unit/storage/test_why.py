"""`fedstage why` on real files: two distilled rounds, by single jobs and by segments."""

import json
import os
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml
from tests.shared.graph import lists_of
from tests.shared.settings import federated
from tests.shared.stages import make_by_command, run_command

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.plan import data_files, unfederated
from fedstage.plan.graph import behind, recipe_file
from fedstage.plan.scores import evaluation
from fedstage.plan.segments import LogitsSegment, Segment
from fedstage.plan.source import Source, source_of_job
from fedstage.plan.training import (
    aggregated_model,
    global_model,
    logits,
    participants_table,
    teacher_logits,
)
from fedstage.plan.training_folder import owners, public_file, training_folder, training_id
from fedstage.protocol.digests import as_json, canonical
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.files import load_json, save_json
from fedstage.storage.planned import write_recipe, write_source
from fedstage.storage.provenance import content_digest
from fedstage.storage.records import find_round_job
from fedstage.storage.why import why

RECIPE = Recipe.model_validate(
    federated(
        data={"digits": {"test": 80, "held_out": 30}},
        clients=3,
        partition={"dirichlet": {"alpha": 1.0, "min_samples": 8}},
        validation=0.2,
        model="logistic_regression",
        global_models=2,
        local="scaffold",
        client={"epochs": 1, "batch_size": 500, "learning_rate": 0.05},
        ensemble={"aggregated": {"checkpoints": 2}},
        server={"steps": 2, "batch_size": 20, "learning_rate": 0.05},
        numerics={"device": "cpu"},
        seed=5,
        **{"global": "designated"},
    )
)
BASE = owners(RECIPE)[1]
ALONE = LocalRecipe(
    **{
        name: getattr(RECIPE, name)
        for name in LocalRecipe.model_fields
        if name in Recipe.model_fields
    }
)
INFO = data_files.data_file(RECIPE.data, "info")


def public_logits(round_, group):
    return logits(RECIPE, round_, group, "aggregated", "held_out")


DISTILLED = global_model(RECIPE, 2, 0)
AGGREGATED = aggregated_model(RECIPE, 2, 0)
METRICS = evaluation(RECIPE, "aggregated_2", "test", 1, 1)
MADE = (DISTILLED, METRICS, unfederated.local_models(ALONE)[1])


def prepare():
    """Make what rounds start from."""
    groups = (global_model(RECIPE, 0, group) for group in (0, 1))
    make_by_command(data_files.participation_table(RECIPE, 1), data_files.clients_table(RECIPE),
                    *groups)  # fmt: skip


def by_segments():
    def run(part):
        folder = training_folder(part.recipe)
        write_recipe(recipe_file(folder), part.recipe)
        for source in set(map(source_of_job, part.jobs())):
            write_source(source)
        run_command(part.stage, folder, **dict(word.split("=") for word in part.words.split()))

    run(Segment(BASE, (0,), 1, 1))
    run(Segment(BASE, (1,), 1, 2))
    run(LogitsSegment(BASE, 0, "aggregated", "held_out", (1,)))
    run(LogitsSegment(BASE, 1, "aggregated", "held_out", (1, 2)))
    run(Segment(RECIPE, (0,), 1, 2))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Working folders with the same files, made by single jobs and by segments."""
    prepared, jobs, segments = (tmp_path_factory.mktemp("why") / name for name in "abc")
    prepared.mkdir()
    before = Path.cwd()
    try:
        os.chdir(prepared)
        prepare()
        for folder, rounds in ((jobs, partial(make_by_command, *MADE)), (segments, by_segments)):
            shutil.copytree(prepared, folder)
            os.chdir(folder)
            rounds()
    finally:
        os.chdir(before)
    return {"jobs": jobs, "segments": segments}


@pytest.fixture
def jobs(folders, tmp_path, monkeypatch):
    """A copy of the folder of single jobs, as the working folder."""
    shutil.copytree(folders["jobs"], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def segments(folders, tmp_path, monkeypatch):
    """A copy of the folder of segments, as the working folder."""
    shutil.copytree(folders["segments"], tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


@dataclass(frozen=True)
class Shown:
    """What `why` writes, taken apart."""

    text: str

    @property
    def facts(self):
        rows = re.findall(r"^  (\w+) +(.+)$", self.text.split("\nsettings")[0], re.MULTILINE)
        return dict(rows)

    @property
    def settings(self):
        match = re.search(r"^settings\n((?:  .*\n)+)", self.text, re.MULTILINE)
        return yaml.safe_load(match[1]) if match else None

    @property
    def options(self):
        match = re.search(r"^place\n((?:  .*\n)+)", self.text, re.MULTILINE)
        return yaml.safe_load(match[1]) if match else None

    @property
    def inputs(self):
        """By option the files, with what is said of each."""
        found, option = {}, None
        for row in self.text.split("\ninputs\n")[1].splitlines():
            if match := re.fullmatch(r"  (\w+)", row):
                option = found.setdefault(match[1], {})
            elif match := re.fullmatch(r"    (.+?)  +(\S+)", row):
                option[match[2]] = match[1]
        return found


def shown(path):
    return Shown(why(Path(path)))


# --- what is told ---------------------------------------------------------------------------------


def test_a_student_came_from_its_aggregate_and_its_teacher(jobs):
    told = shown(DISTILLED)
    assert told.text.startswith(f"{DISTILLED}\n")
    assert re.fullmatch(r"\S+\+00:00 by stage distillation", told.facts["made"])
    assert re.fullmatch(r"[\d.]+ s, [\d.]+ s start-up, \d+ MB", told.facts["took"])
    assert told.facts["recipe"] == training_folder(RECIPE)
    assert told.facts["source"] == "the same now"
    assert told.facts["content"] == f"{content_digest(Path(DISTILLED))}, unchanged"
    assert told.facts["versions"].startswith("fedstage ")
    assert told.settings == canonical(RECIPE)
    assert told.options == {"round": 2, "group": 0}
    assert {option: set(files) for option, files in told.inputs.items()} == {
        "recipe": {recipe_file(training_folder(RECIPE))},
        "start": {AGGREGATED},
        "logits": set(teacher_logits(RECIPE, 2)),
        "public": {public_file(RECIPE)},
        "info": {INFO},
    }
    said = {text for files in told.inputs.values() for text in files.values()}
    assert all(re.fullmatch(r"[0-9a-f]{16}, unchanged", text) for text in said)


def test_every_kind_of_file_tells_its_stage_settings_and_source(jobs):
    made = behind(MADE)
    assert len({job.stage for job in made}) == 10
    for job in made:
        for path in job.files.values():
            told = shown(path)
            assert told.facts["made"].endswith(f" by stage {job.stage.name}"), path
            assert told.facts["source"] == "the same now", path
            assert told.facts["content"].endswith(", unchanged"), path
            assert told.settings == json.loads(as_json(canonical(job.config))), path
            assert told.options == (job.at or None), path
            assert Path(told.facts["record"]).is_file(), path


def test_a_table_came_from_the_metrics_of_its_runs(jobs):
    runs, table = Path("results/descriptions/x/default.runs.json"), "results/tables/x/default.md"
    part = {"length": {"rounds": 1}, "federated": canonical(RECIPE)}
    run = {"settings": {"method": "a", "seed": 0}, "metrics": METRICS, "partition": "p"}
    run["candidates"] = [{"parts": [part]}]
    about = {
        "experiment": "x",
        "scale": "default",
        "title": "X",
        "rows": ["method"],
    }
    runs.parent.mkdir(parents=True)
    content = about | {"columns": [], "metric": "top1_accuracy", "runs": [run]}
    save_json(runs, content)
    save_json(runs.with_name("default.results.json"), {"results": ["table"], "judged": False})
    write_source(Source("table"))
    assert main(["run", "scores", str(runs)]) == 0
    assert main(["run", "table", str(runs), "shown=tables"]) == 0
    scores = "results/tables/x/default.scores.parquet"
    told = shown(table)
    assert told.facts["source"] == "the same now"
    assert told.inputs["runs"].keys() == {str(runs)}
    now = content_digest(Path(METRICS))
    assert told.inputs["scores"] == {scores: f"{content_digest(Path(scores))}, unchanged"}
    assert shown(scores).inputs["metrics"] == {METRICS: f"{now}, unchanged"}
    Path(METRICS).write_text("other")
    assert shown(scores).inputs["metrics"][METRICS].endswith(f", was {now}")


def test_the_command_prints_it(jobs, capsys):
    assert main(["why", DISTILLED]) == 0
    assert capsys.readouterr() == (why(Path(DISTILLED)) + "\n", "")


# --- what has changed since -----------------------------------------------------------------------


def test_inputs_that_have_changed_or_gone_are_told(jobs):
    gone, other = teacher_logits(RECIPE, 2)[:2]
    then = {path: content_digest(Path(path)) for path in (gone, other)}
    Path(gone).unlink()
    shutil.copyfile(teacher_logits(RECIPE, 2)[-1], other)
    logits = shown(DISTILLED).inputs["logits"]
    assert logits[gone] == f"gone, was {then[gone]}"
    assert logits[other] == f"{content_digest(Path(other))}, was {then[other]}"
    assert sum(text.endswith(", unchanged") for text in logits.values()) == 2


@pytest.mark.parametrize("path", [DISTILLED, METRICS])
def test_a_file_that_is_gone_is_explained_with_the_command_that_makes_it(jobs, path):
    then = why(Path(path))
    digest = content_digest(Path(path))
    Path(path).unlink()
    assert why(Path(path)).splitlines() == [
        *then.replace(f"{digest}, unchanged", f"gone, was {digest}", 1).splitlines(),
        "to make it again",
        f"  snakemake --cores all {path}",
    ]


def test_a_file_that_is_another_than_was_made_is_told(jobs):
    then = content_digest(Path(DISTILLED))
    shutil.copyfile(AGGREGATED, DISTILLED)
    assert shown(DISTILLED).facts["content"] == f"{content_digest(Path(AGGREGATED))}, was {then}"


def test_the_file_of_the_source_that_has_changed_is_told(jobs, monkeypatch):
    then = load_json(shown(DISTILLED).facts["record"])["source"]
    now = then | {"fedstage.stages.distillation:distillation": "0" * 12}
    monkeypatch.setattr("fedstage.storage.why.digest_now", now.get)
    told = "changed since: fedstage/stages/distillation.py"
    assert shown(DISTILLED).facts["source"] == told


# --- segments -------------------------------------------------------------------------------------


def round_files():
    for folder in Path("results/training").glob("*/round_*"):
        yield from (str(path) for path in folder.rglob("*") if path.is_file())


def test_files_of_segments_have_a_record(segments):
    files = list(round_files())
    assert len(files) >= 15
    for path in files:
        told = shown(path)
        recipe = RECIPE if Path(path).parts[2] == training_id(RECIPE) else BASE
        equation = find_round_job(Path(), path).stage.name
        assert re.search(rf" by stage (logits_)?segment, for {equation}$", told.facts["made"])
        assert told.facts["source"] == "the same now"
        assert told.facts["recipe"] == training_folder(recipe)


def test_a_segment_is_told_with_its_rounds(segments):
    told = shown(DISTILLED)
    assert told.facts["made"].endswith(" by stage segment, for distillation")
    assert told.options == {"first": 1, "last": 2, "groups": [0]}
    assert training_id(RECIPE) in told.facts["record"]
    told = shown(public_logits(2, 1))
    assert told.facts["made"].endswith(" by stage logits_segment, for logits")
    assert (told.options["rounds"], told.options["group"]) == ([1, 2], 1)
    # A distilled segment makes the logits that it teaches with.
    assert shown(public_logits(2, 0)).facts["made"].endswith(" by stage segment, for logits")


def test_what_a_file_of_a_segment_read_is_what_its_own_job_reads(folders, monkeypatch):
    monkeypatch.chdir(folders["jobs"])
    compared = 0
    for path in round_files():
        job = {option: list(files) for option, files in shown(path).inputs.items()}
        assert lists_of(find_round_job(Path(), path).inputs) == job, path
        compared += 1
    assert compared >= 20


def test_a_record_of_another_segment_is_not_taken(segments):
    for record in Path("results/logs/segment").glob(f"{training_id(BASE)}/*_0002_*.json"):
        record.unlink()
    assert "by stage segment" in why(Path(aggregated_model(BASE, 1, 0)))
    with pytest.raises(FedstageError, match="no record"):
        why(Path(aggregated_model(BASE, 1, 1)))  # of another group


# --- what cannot be told --------------------------------------------------------------------------


def test_what_has_no_record_is_an_error(jobs, capsys):
    others = "results/other.txt", "results/training/other.txt"
    for path in others:
        Path(path).write_text("x")
    shutil.rmtree("results/logs/distillation")
    for path, message in [
        ("results/training/x/round_0001/group_0/a.safetensors", "no such file, and no record"),
        ("results/no.txt", "no such file, and no record"),
        ("results/logs", "is a folder; name a file in it"),
        ("config.yaml", "must be a file below a folder results that has logs"),
        *((path, "no record below results/logs") for path in others),
        (DISTILLED, "no record below results/logs of a job that made it: the logs were deleted"),
    ]:
        assert main(["why", path]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fedstage why: {path}: {message}")


def test_a_damaged_record_is_named_and_the_others_are_told(jobs, capsys):
    table = participants_table(RECIPE, 1, 1)
    (other,) = (jobs / "results/logs/aggregation").rglob("round_0001/group_0/*.json")
    told = why(jobs / table)
    other_inputs = json.dumps(json.loads(other.read_text()) | {"inputs": {"a": 1}})
    for content in ("{", "[]", "{}", '{"stage": 1}', b"\xff", other_inputs):
        other.write_bytes(content if isinstance(content, bytes) else content.encode())
        head, _, damaged = why(jobs / table).partition("damaged records, left out\n")
        assert head.rstrip("\n") == told
        assert damaged.startswith(f"  {other}: ")
        assert len(damaged.splitlines()) == 1
        assert main(["why", str(jobs / participants_table(RECIPE, 1, 0))]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert str(other) in line


def test_an_empty_record_as_touching_makes_it_tells_nothing(jobs, capsys):
    table = participants_table(RECIPE, 1, 1)
    (other,) = (jobs / "results/logs/aggregation").rglob("round_0001/group_0/*.json")
    told = why(jobs / table)
    other.write_text("")
    assert why(jobs / table) == told
    assert main(["why", str(jobs / participants_table(RECIPE, 1, 0))]) == 1
    assert "no record" in capsys.readouterr().err


def test_a_job_that_failed_has_made_nothing(jobs, capsys):
    (record,) = Path("results/logs/distillation").rglob("round_0002/**/*.json")
    (made,) = load_json(record)["outputs"]["output"]
    Path(AGGREGATED).unlink()
    place = ["round=2", "group=0"]
    assert main(["run", "distillation", recipe_file(training_folder(RECIPE)), *place]) == 1
    assert capsys.readouterr().err.splitlines() == load_json(record)["error"]
    assert main(["why", made]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{made}: no record below results/logs of a job that made it" in line
