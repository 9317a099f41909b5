import inspect
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.shared.settings import federated

from fedstage.data.participation import draw
from fedstage.errors import FedstageError
from fedstage.execution import cli, jobs
from fedstage.execution.cli import COMMANDS, main
from fedstage.execution.jobs import Work, job_of, record_of
from fedstage.plan.data_files import participation_table
from fedstage.plan.graph import recipe_file
from fedstage.plan.stages import STAGES
from fedstage.settings.recipes import Recipe
from fedstage.settings.registry import PLUGINS
from fedstage.stages import find_stage
from fedstage.storage.planned import write_recipe
from fedstage.storage.tables import load_table

#: A job that needs nothing but its recipe.
FILE = participation_table(Recipe.model_validate(federated(clients=10, participants=4, seed=3)), 1)
JOB, RECORD = FILE.job, Path(record_of(FILE.job))
RECIPE = Path(recipe_file(JOB.folder))
PLACE = [f"{name}={value}" for name, value in JOB.at.items()]
WORDS = ["run", "participation", str(RECIPE), *PLACE]
FAULTS = {
    "user": FedstageError("client.epochs = 0: must be at least 1"),
    "users": FedstageError("here: a: missing\nhere: b: missing"),
    "bug": ZeroDivisionError("a bug"),
}


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """A job of a stage of this test that fails if its file is called after a fault; its record."""
    record = tmp_path / "logs" / "deep" / "a.json"

    def job(name, file, words):
        def run():
            if str(file) in FAULTS:
                raise FAULTS[str(file)]

        return Work(name, str(record), {}, {}, [], run)

    monkeypatch.setattr(jobs, "job_of", job)
    return record


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with the recipe of the job."""
    monkeypatch.chdir(tmp_path)
    write_recipe(str(RECIPE), JOB.config)
    return tmp_path


# --- choosing a stage -----------------------------------------------------------------------------


def test_help_lists_all_commands(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name, command in COMMANDS.items():
        assert f" {name} " in shown
        assert command.about in shown


@pytest.mark.parametrize("words", [[], ["verfy"], ["run", "aggregation"]])
def test_what_is_no_command_is_2_and_told_what_there_is(words, capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(words)
    assert "usage: fedstage " in capsys.readouterr().err


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from fedstage.execution.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print({'torch', 'numpy', 'pandas', 'pyarrow'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_a_documented_function(name):
    assert inspect.getdoc(find_stage(name))


def test_words_that_are_no_job_are_named(here):
    for name, words, told in (
        ("participatoin", PLACE, "stage = 'participatoin': no such stage"),
        ("participation", [], "no place: participation must be given first=... last=..."),
        ("participation", [*PLACE, "round=1"], "round=1: participation must be given first="),
        ("participation", ["first=x", "last=2"], "first=x last=2: invalid literal for int()"),
    ):
        with pytest.raises(FedstageError, match=re.escape(told)):
            job_of(name, RECIPE, words)


def test_words_that_are_no_segment_are_named(here):
    write_recipe("training.yaml", Recipe.model_validate(federated(clients=10, participants=4)))
    for name, words, told in (
        ("segment", ["first=1"], "first=1: segment must be given first=... last=... groups=..."),
        ("segment", ["first=1", "last=2", "groups=0,x"], "groups=0,x: invalid literal for int()"),
        ("logits_segment", ["rounds=1,2"], "must be given rounds=... group=... members=... images"),
    ):
        with pytest.raises(FedstageError, match=re.escape(told)):
            job_of(name, Path("training.yaml"), words)
    made = job_of("segment", Path("training.yaml"), ["groups=0", "first=1", "last=2", "kept=a_1,b"])
    assert made.record.endswith("segment_0001_0002_groups_0.json")


# --- what happens then ----------------------------------------------------------------------------


def test_the_record_has_the_command_and_what_it_took(fake, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fedstage", "run", "fake", "a b"])
    assert main() == 0
    assert capsys.readouterr() == ("", "")
    figures = json.loads(fake.read_text())
    assert (figures["stage"], figures["command"]) == ("fake", "fedstage run fake 'a b'")
    assert figures["startup_s"] > 0
    assert figures["peak_memory_mb"] > 10


@pytest.mark.parametrize("fault", ["user", "users"])
def test_faults_of_the_user_are_1_and_a_line_each_shown_and_recorded(fake, capsys, fault):
    assert main(["run", "fake", fault]) == 1
    message = "".join(f"fedstage fake: {line}\n" for line in str(FAULTS[fault]).splitlines())
    assert capsys.readouterr() == ("", message)
    command, lines = f"fedstage run fake {fault}", message.splitlines()
    assert json.loads(fake.read_text()) == {"command": command, "error": lines}
    assert [path.name for path in fake.parent.iterdir()] == ["a.json"]


def test_a_bug_is_one_line_with_its_place_and_its_traceback_is_recorded(fake, capsys, monkeypatch):
    assert main(["run", "fake", "bug"]) == 1
    shown = capsys.readouterr().err
    assert re.fullmatch(
        r"fedstage fake: fedstage/\S+\.py, line \d+: ZeroDivisionError: a bug\n", shown
    )
    record = json.loads(fake.read_text())
    assert record["error"] == [shown.rstrip("\n")]
    assert record["traceback"][0] == "Traceback (most recent call last):"
    monkeypatch.setitem(PLUGINS.files, "fedstage_plugins.mine", Path(__file__))
    assert main(["run", "fake", "bug"]) == 1
    assert f"fake: {__file__}, line " in capsys.readouterr().err


def test_an_interrupt_has_no_traceback(monkeypatch):
    def interrupted(argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["fedstage", "list"])
    monkeypatch.setattr(cli, "run_command", interrupted)
    assert main() == 130


# --- the process ----------------------------------------------------------------------------------


def fedstage(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fedstage.execution.cli", *arguments], capture_output=True, text=True
    )


def test_a_stage_runs_in_a_process_of_its_own(here):
    start = time.perf_counter()
    done = fedstage(*WORDS)
    elapsed = time.perf_counter() - start
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    drawn = load_table(Path(FILE), ["round", "client"]).to_pydict()
    first = [client for round_, client in zip(*drawn.values(), strict=True) if round_ == 1]
    assert first == draw(10, 4, 3, 1).tolist()
    figures = json.loads(RECORD.read_text())
    assert 0.01 < figures["startup_s"] <= elapsed + 0.05
    assert figures["startup_s"] + figures["compute_s"] <= elapsed + 0.05


def test_startup_counts_from_the_start_of_the_process(here):
    code = (
        "import sys, time; time.sleep(0.5); "
        "from fedstage.execution.cli import main; main(sys.argv[1:])"
    )
    subprocess.run([sys.executable, "-c", code, *WORDS], check=True)
    assert json.loads(RECORD.read_text())["startup_s"] > 0.5


def test_startup_counts_from_when_the_command_was_given(fake):
    assert jobs.run("fake", "a", started=time.perf_counter() - 100) == 0
    assert 100 <= json.loads(fake.read_text())["startup_s"] < 130


def test_a_file_that_cannot_be_written_ends_in_one_line(here, capsys):
    Path(FILE).mkdir()
    assert main(WORDS) == 1
    told = capsys.readouterr().err
    assert told == f"fedstage participation: {FILE}: cannot be written: Is a directory\n"
    assert json.loads(RECORD.read_text())["error"] == told.splitlines()


@pytest.mark.parametrize("limit", [0, 100, 1000])
def test_a_limit_of_file_size_ends_in_one_line_and_leaves_nothing(here, limit, capsys):
    """As a full disk does: also where the log, or the record, has no room."""
    _, most = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        assert main(WORDS) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (told,) = capsys.readouterr().err.splitlines()
    assert re.match(r"fedstage participation: \S+: cannot be written: .*File too large", told)
    assert not list(here.rglob(".*"))


ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize(
    ("closed", "variables"), [("", ASCII), (">&-", {}), (">&- 2>&- <&-", ASCII)]
)
def test_any_locale_and_closed_output_will_do(here, closed, variables):
    shutil.copytree(RECIPE.parent, "é")
    words = f"run participation é/recipe.yaml {' '.join(PLACE)}"
    command = f"'{sys.executable}' -m fedstage.execution.cli {words} {closed}"
    subprocess.run(command, shell=True, env=os.environ | variables, check=True)
    assert Path(FILE).exists()
    command = json.loads(RECORD.read_text("utf-8"))["command"]
    assert command.startswith("fedstage run participation 'é/recipe.yaml' ")


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    code = f"'{sys.executable}' -m fedstage.execution.cli --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")
