"""`fedstage why` on real files: two distilled rounds, by single jobs and by segments."""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests.shared.graph import lists_of
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.plan import data_files, unfederated
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.graph import name_of
from fedstage.plan.scores import evaluation
from fedstage.plan.source import fingerprint_of, source_of, stage_fingerprint
from fedstage.plan.training import (
    aggregated_model,
    aggregation,
    global_model,
    logits,
    member_logits,
    participants_table,
    teacher_logits,
    updates,
)
from fedstage.plan.training_folder import owners, public_file, training_folder, training_id
from fedstage.settings.groups import group_participants
from fedstage.settings.models import InitialModel
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.storage.files import save_json
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


def call(stage, log, source, **options):
    """Run a stage by its command, as a rule does."""
    arguments = [stage, "--log", f"results/logs/{log}.log", "--fingerprint", source]
    for name, value in options.items():
        values = value if isinstance(value, list | tuple) else [value]
        arguments += [f"--{name.replace('_', '-')}", *map(str, values)]
    assert main(arguments) == 0


def prepare():
    """Make what rounds start from."""
    data, scheme, plan = (
        data_files.data_file(RECIPE.data, "train").split("/")[2],
        name_of(data_files.clients_table(RECIPE)),
        name_of(data_files.participation_table(RECIPE, 1)),
    )
    parts = {
        part: data_files.data_file(RECIPE.data, part) for part in ("train", "test", "held_out")
    }
    source = source_of(RECIPE.data, "dataset")
    settings = as_json(canonical(RECIPE.data))
    call("dataset", f"dataset/{data}", source, settings=settings, **parts, info=INFO)
    call(
        "partition", f"partition/{scheme}", fingerprint_of(data_files.clients_table(RECIPE).job),
        settings=as_json(data_files.clients_table(RECIPE).job.settings), train=parts["train"],
        output=data_files.clients_table(RECIPE), histogram=data_files.label_histogram(RECIPE),
    )  # fmt: skip
    call(
        "participation", f"participation/{plan}/rounds_0001-0100",
        fingerprint_of(data_files.participation_table(RECIPE, 1).job),
        settings=as_json(data_files.participation_table(RECIPE, 1).job.settings), first=1, last=100,
        output=data_files.participation_table(RECIPE, 1),
    )  # fmt: skip
    initial = name_of(data_files.initial_weights(RECIPE.data, RECIPE.model, RECIPE.seed, 0))
    drawn = InitialModel(model=RECIPE.model, seed=RECIPE.seed)
    settings = as_json(canonical(drawn))
    for group in (0, 1):
        call(
            "initial_model", f"initial_model/{initial}/group_{group}",
            source_of(drawn, "initial_model"), settings=settings, group=group, info=INFO,
            output=data_files.initial_weights(RECIPE.data, RECIPE.model, RECIPE.seed, group),
        )  # fmt: skip
    source = stage_fingerprint("recipe")
    for recipe in (RECIPE, BASE):
        settings, output = as_json(canonical(recipe)), f"{training_folder(recipe)}/recipe.yaml"
        call(
            "recipe",
            f"recipe/training/{training_id(recipe)}",
            source,
            settings=settings,
            output=output,
        )


def recipe_file(recipe):
    return f"{training_folder(recipe)}/recipe.yaml"


def train(recipe, round_, group):
    """A group's round, a job for each participant and one for the aggregation."""
    about = {"recipe": f"{training_folder(recipe)}/recipe.yaml", "info": INFO}
    begun = {"start": global_model(recipe, round_ - 1, group)}
    if round_ > 1:
        begun["state"] = aggregation(recipe, round_ - 1, group, output="new_state")
    place = f"{training_id(recipe)}/round_{round_:04d}/group_{group}"
    sent = updates(recipe, round_, group)
    for participant, update in zip(group_participants(recipe, group), sent, strict=True):
        call(
            "local_training", f"local_training/{place}/participant_{participant}",
            source_of(recipe, "local_training"), **about, **begun, round=round_, group=group,
            participants=[participant], data=data_files.data_file(recipe.data, "train"),
            clients=data_files.clients_table(recipe),
            participation=data_files.participation_table(recipe, round_), outputs=[update],
        )  # fmt: skip
    call(
        "aggregation", f"aggregation/{place}", source_of(recipe, "aggregation"), **about, **begun,
        updates=sent, output=aggregated_model(recipe, round_, group),
        participants=participants_table(recipe, round_, group),
        new_state=aggregation(recipe, round_, group, output="new_state"),
    )  # fmt: skip


def speak(recipe, round_, group):
    call(
        "logits",
        f"logits/{training_id(recipe)}/round_{round_:04d}/group_{group}/aggregated-held_out",
        source_of(recipe, "logits", members="aggregated"),
        recipe=f"{training_folder(recipe)}/recipe.yaml",
        info=INFO, members="aggregated",
        models=aggregated_model(recipe, round_, group), data=public_file(RECIPE),
        output=public_logits(round_, group),
    )  # fmt: skip


def teach(round_):
    call(
        "distillation", f"distillation/{training_id(RECIPE)}/round_{round_:04d}/group_0",
        source_of(RECIPE, "distillation"), recipe=recipe_file(RECIPE), info=INFO,
        round=round_, group=0, start=aggregated_model(RECIPE, round_, 0),
        logits=teacher_logits(RECIPE, round_),
        public=public_file(RECIPE), output=global_model(RECIPE, round_, 0),
    )  # fmt: skip


METRICS = evaluation(RECIPE, "aggregated_2", "test", 1, 1)


def evaluate():
    """Score the ensemble that taught in round 1, here on the public images' logits of its own."""
    members = member_logits(RECIPE, 1, RECIPE.ensemble, "test")
    for group, output in enumerate(members):
        call(
            "logits", f"logits/{training_id(BASE)}/round_0001/group_{group}/aggregated-test",
            source_of(BASE, "logits", members="aggregated"), recipe=recipe_file(BASE),
            info=INFO, members="aggregated",
            models=aggregated_model(BASE, 1, group),
            data=data_files.data_file(RECIPE.data, "test"), output=output,
        )  # fmt: skip
    call(
        "evaluation", f"evaluation/{training_id(RECIPE)}/aggregated_2-test/rounds_0001_every_1",
        source_of(RECIPE, "evaluation", "aggregated_2"), recipe=recipe_file(RECIPE), info=INFO,
        evaluated="aggregated_2", role="test", rounds=1, every=1, models=members,
        data=data_files.data_file(RECIPE.data, "test"), clients=data_files.clients_table(RECIPE),
        histogram=data_files.label_histogram(RECIPE),
        participants=[participants_table(RECIPE, 1, group) for group in (0, 1)],
        output=METRICS,
    )  # fmt: skip


def train_alone():
    folder = unfederated.local_folder(ALONE).rpartition("/")[2]
    recipe = f"results/local_models/{folder}/recipe.yaml"
    settings = as_json(canonical(ALONE))
    call(
        "recipe", f"recipe/local_models/{folder}", stage_fingerprint("recipe"), settings=settings,
        output=recipe,
    )  # fmt: skip
    call(
        "local_model", f"local_model/{folder}/client_1", source_of(ALONE, "local_model"),
        recipe=recipe, who="client_1", data=data_files.data_file(RECIPE.data, "train"), info=INFO,
        clients=data_files.clients_table(RECIPE),
        start=data_files.initial_weights(RECIPE.data, RECIPE.model, RECIPE.seed, 0),
        output=unfederated.local_models(ALONE)[1],
    )  # fmt: skip


def by_single_jobs():
    for round_ in (1, 2):
        for group in (0, 1):
            recipe = RECIPE if (round_, group) == (2, 0) else BASE
            train(recipe, round_, group)
            speak(recipe, round_, group)
        teach(round_)
    evaluate()
    train_alone()


def by_segments():
    def segment(recipe, first, last, groups):
        name = f"segment_{first:04d}_{last:04d}_groups_{groups[0]}_{training_id(recipe)}"
        source, settings = source_of(recipe, "segment"), f"{training_folder(recipe)}/recipe.yaml"
        place = {"first": first, "last": last, "groups": groups}
        call("segment", f"segment/{name}", source, recipe=settings, **place)

    def logits(group, rounds):
        name = f"logits_{rounds[0]:04d}_group_{group}_aggregated_held_out_{training_id(BASE)}"
        call(
            "logits_segment", f"logits_segment/{name}",
            source_of(BASE, "logits_segment", members="aggregated"),
            recipe=recipe_file(BASE), rounds=rounds, group=group, members="aggregated",
            images="held_out",
        )  # fmt: skip

    segment(BASE, 1, 1, [0])
    segment(BASE, 1, 2, [1])
    logits(0, [1])
    logits(1, [1, 2])
    segment(RECIPE, 1, 2, [0])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Working folders with the same files, made by single jobs and by segments."""
    prepared, jobs, segments = (tmp_path_factory.mktemp("why") / name for name in "abc")
    prepared.mkdir()
    before = Path.cwd()
    try:
        os.chdir(prepared)
        prepare()
        for folder, rounds in ((jobs, by_single_jobs), (segments, by_segments)):
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
        match = re.search(r"^options\n((?:  .*\n)+)", self.text, re.MULTILINE)
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


DISTILLED = global_model(RECIPE, 2, 0)
AGGREGATED = aggregated_model(RECIPE, 2, 0)


# --- what is told ---------------------------------------------------------------------------------


def test_a_student_came_from_its_aggregate_and_its_teacher(jobs):
    told = shown(DISTILLED)
    assert told.text.startswith(f"{DISTILLED}\n")
    assert re.fullmatch(r"\S+\+00:00 by stage distillation", told.facts["made"])
    assert re.fullmatch(r"[\d.]+ s, [\d.]+ s start-up, \d+ MB", told.facts["took"])
    assert told.facts["recipe"] == training_folder(RECIPE)
    assert told.facts["source"] == f"{source_of(RECIPE, 'segment')}, the same now"
    assert told.facts["content"] == f"{content_digest(Path(DISTILLED))}, unchanged"
    assert told.facts["versions"].startswith("fedstage ")
    assert told.settings == canonical(RECIPE)
    assert told.options == {"round": 2, "group": 0}
    assert {option: set(files) for option, files in told.inputs.items()} == {
        "recipe": {f"{training_folder(RECIPE)}/recipe.yaml"},
        "start": {AGGREGATED},
        "logits": set(teacher_logits(RECIPE, 2)),
        "public": {public_file(RECIPE)},
        "info": {INFO},
    }
    said = {text for files in told.inputs.values() for text in files.values()}
    assert all(re.fullmatch(r"[0-9a-f]{16}, unchanged", text) for text in said)


def test_every_kind_of_file_tells_its_stage_settings_and_source(jobs):
    for path, stage, settings, options in [
        (data_files.data_file(RECIPE.data, "held_out"), "dataset", canonical(RECIPE.data), None),
        (
            data_files.label_histogram(RECIPE), "partition",
            data_files.clients_table(RECIPE).job.settings, None,
        ),
        (
            data_files.participation_table(RECIPE, 1), "participation",
            data_files.participation_table(RECIPE, 1).job.settings, {"first": 1, "last": 100},
        ),
        (
            data_files.initial_weights(RECIPE.data, RECIPE.model, RECIPE.seed, 1), "initial_model",
            {"model": canonical(RECIPE.model), "seed": 5}, {"group": 1},
        ),
        (f"{training_folder(RECIPE)}/recipe.yaml", "recipe", canonical(RECIPE), None),
        (
            updates(BASE, 1, 1)[0], "local_training", canonical(BASE),
            {"round": 1, "group": 1, "participants": [1]},
        ),
        (participants_table(BASE, 1, 0), "aggregation", canonical(BASE), None),
        (aggregation(RECIPE, 2, 0, output="new_state"), "aggregation", canonical(RECIPE), None),
        (
            public_logits(2, 0), "logits", canonical(RECIPE), {"members": "aggregated"},
        ),
        (
            METRICS, "evaluation", canonical(RECIPE),
            {"evaluated": "aggregated_2", "role": "test", "rounds": 1, "every": 1},
        ),
        (unfederated.local_models(ALONE)[1], "local_model", canonical(ALONE), {"who": "client_1"}),
    ]:  # fmt: skip
        told = shown(path)
        assert told.facts["made"].endswith(f" by stage {stage}"), path
        assert told.facts["source"].endswith(", the same now"), path
        assert told.facts["content"].endswith(", unchanged"), path
        assert told.settings == (json.loads(as_json(settings)) if settings else None), path
        assert told.options == options, path
        assert Path(told.facts["record"]).is_file(), path


def test_a_table_came_from_the_metrics_of_its_runs(jobs):
    runs, table = Path("results/descriptions/x/default.runs.json"), "results/tables/x/default.md"
    part = {"length": {"rounds": 1}, "federated": canonical(RECIPE)}
    run = {"settings": {"method": "a", "seed": 0}, "metrics": METRICS, "partition": "p"}
    run["candidates"] = [{"parts": [part]}]
    about = {"experiment": "x", "scale": "default", "title": "X", "rows": ["method"]}
    runs.parent.mkdir(parents=True)
    content = about | {"columns": [], "metric": "top1_accuracy", "runs": [run]}
    save_json(runs, content)
    outputs = {
        name: table.replace(".md", f".{name}") for name in ("csv", "parquet", "html", "latex")
    }
    source = stage_fingerprint("tables")
    scores = Path("results/tables/x/default.scores.csv")
    call("run_scores", "run_scores/x/default", None, runs=runs, scores=scores)
    outputs |= {"scores": scores, "markdown": table}
    call("tables", "tables/x/default", source, runs=runs, **outputs)
    told = shown(table)
    assert told.facts["source"] == f"{source}, the same now"
    assert told.inputs["runs"].keys() == {str(runs)}
    now = content_digest(Path(METRICS))
    assert told.inputs["scores"] == {str(scores): f"{content_digest(scores)}, unchanged"}
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


def test_source_that_has_changed_is_told(jobs, monkeypatch):
    monkeypatch.setattr("fedstage.storage.why.source_of", lambda *which: "0" * 12)
    then = source_of(RECIPE, "segment")
    assert shown(DISTILLED).facts["source"] == f"{then} then, 000000000000 now: changed"


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
        assert told.facts["source"].endswith(", the same now")
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
    for record in Path("results/logs/segment").glob(f"*_0002_*{training_id(BASE)}*.json"):
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
    (other,) = (jobs / "results/logs/aggregation").rglob("round_0001/group_0.record.json")
    told = why(jobs / table)
    other_inputs = json.dumps(json.loads(other.read_text()) | {"inputs": {"a": 1}})
    for content in ("", "{", "[]", "{}", '{"stage": 1}', b"\xff", other_inputs):
        other.write_bytes(content if isinstance(content, bytes) else content.encode())
        head, _, damaged = why(jobs / table).partition("damaged records, left out\n")
        assert head.rstrip("\n") == told
        assert damaged.startswith(f"  {other}: ")
        assert len(damaged.splitlines()) == 1
        assert main(["why", str(jobs / participants_table(RECIPE, 1, 0))]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert str(other) in line


def test_a_job_that_failed_leaves_no_record(jobs, capsys):
    record = next(Path("results/logs/distillation").rglob("round_0002/*.record.json"))
    record.unlink()
    arguments = ["--recipe", recipe_file(RECIPE), "--round", "2", "--group", "0"]
    arguments += ["--start", AGGREGATED, "--logits", "none"]
    arguments += ["--public", public_file(RECIPE), "--info", INFO, "--output", DISTILLED]
    log = str(record).replace(".record.json", ".log")
    assert main(["distillation", "--log", log, *arguments]) == 1
    assert not record.exists()
