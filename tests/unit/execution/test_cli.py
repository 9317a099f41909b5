import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from fedstage.data.participation import draw
from fedstage.errors import FedstageError
from fedstage.execution import cli
from fedstage.execution.cli import main, stage_parser
from fedstage.execution.commands import COMMANDS
from fedstage.plan.graph import Command
from fedstage.plan.stages import STAGES
from fedstage.settings.registry import PLUGINS
from fedstage.stages import find_stage
from fedstage.storage.tables import load_table

RULES = Path(__file__).parents[3] / "workflow/rules"
PLAN = {"clients": 10, "participants": 4, "participation": "uniform", "seed": 3}
ROUNDS = ("--first", "1", "--last", "2")
PARTICIPATION = ("--settings", json.dumps(PLAN), *ROUNDS)


@pytest.fixture
def fake_stage(monkeypatch):
    """A stage that notes what it is called with, and may fail."""
    calls = []

    def fake(
        *,
        name: str,
        number: int | None = None,
        source: Path | None = None,
        client: int | None = None,
        members: list[Path] | None = None,
        new_state: Path | None = None,
    ) -> None:
        """Do nothing.

        But say 100% of it.
        """
        calls.append(
            {
                "name": name,
                "number": number,
                "source": source,
                "client": client,
                "members": list(members or []),
                "new_state": new_state,
            }
        )
        if name == "user":
            raise FedstageError("client.epochs = 0: must be at least 1")
        if name == "users":
            raise FedstageError("here: a: missing\nhere: b: missing")
        if name == "bug":
            raise ZeroDivisionError("a bug")

    module = ModuleType("fedstage.stages.fake")
    module.fake = fake
    monkeypatch.setitem(sys.modules, "fedstage.stages.fake", module)
    monkeypatch.setitem(STAGES, "fake", Command(name="fake", about="a stage of this test"))
    return calls


# --- choosing a stage -----------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_all_commands_and_stages(option, capsys):
    assert main([option]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: fedstage COMMAND")
    words = " ".join(shown.split())
    for name, command in COMMANDS.items():
        assert f"\n  {name} {command.usage}".rstrip() + "\n" in shown
        assert f" {command.about}. " in words
    for name, stage in STAGES.items():
        assert f"  {name} " in shown
        assert stage.about in shown


def test_no_stage_shows_the_stages_and_fails(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert "distillation" in shown.out + shown.err


def test_an_unknown_stage_is_one_line_with_what_was_meant(capsys):
    assert main(["local_trainnig", "--output", "x"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "fedstage: 'local_trainnig': no such command or stage; did you mean 'local_training'? "
        "fedstage --help lists all\n"
    )


def test_help_does_not_wait_for_torch():
    code = (
        "import sys; from fedstage.execution.cli import main; main(['--help']); "
        "print(sorted({'torch', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_arguments_are_those_of_the_process_by_default(fake_stage, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedstage", "fake", "--name", "a"])
    assert main() == 0
    assert fake_stage[0]["name"] == "a"


# --- options --------------------------------------------------------------------------------------


def test_options_are_the_keyword_arguments_of_the_stage(fake_stage):
    arguments = "--name a --number 4 --source s --client 2 --members m n --new-state o"
    assert main(["fake", *shlex.split(arguments)]) == 0
    assert fake_stage == [
        {
            "name": "a",
            "number": 4,
            "source": Path("s"),
            "client": 2,
            "members": [Path("m"), Path("n")],
            "new_state": Path("o"),
        }
    ]


def test_options_left_out_have_their_defaults(fake_stage):
    assert main(["fake", "--name", "a"]) == 0
    (call,) = fake_stage
    assert call == {
        "name": "a",
        "number": None,
        "source": None,
        "client": None,
        "members": [],
        "new_state": None,
    }


def test_options_of_what_there_is_not_may_be_empty(fake_stage):
    # A rule passes `--state {input.state}` with nothing behind it where there is no state.
    assert main(["fake", "--name", "a", "--source", "--client", "--members"]) == 0
    assert (fake_stage[0]["source"], fake_stage[0]["client"]) == (None, None)
    assert fake_stage[0]["members"] == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("", "--name"),
        ("--name", "--name"),
        ("--name a --nmae b", "--nmae"),
        ("--name a --number x", "'x'"),
        ("--name a --number 1.5", "'1.5'"),
        ("--name a stray", "stray"),
        ("--name a --number 1 2", "arguments: 2"),
    ],
)
def test_wrong_options_are_named(fake_stage, capsys, arguments, named):
    with pytest.raises(SystemExit) as caught:
        main(["fake", *shlex.split(arguments)])
    assert caught.value.code == 2
    assert named in capsys.readouterr().err
    assert fake_stage == []


def test_help_of_a_stage_is_its_documentation(fake_stage, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["fake", "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "Do nothing.\n\nBut say 100% of it." in shown
    for option in ("--name", "--number", "--source", "--members", "--new-state", "--log"):
        assert option in shown


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_has_a_documented_function_and_options(name):
    assert inspect.getdoc(find_stage(name))
    assert stage_parser(name).format_help()


# --- what happens then ----------------------------------------------------------------------------


def test_success_is_0_and_silent(fake_stage, capsys):
    assert main(["fake", "--name", "a"]) == 0
    assert capsys.readouterr() == ("", "")


def test_log_has_the_command_and_timings_stand_beside_it(fake_stage, tmp_path):
    log = tmp_path / "logs" / "deep" / "a.log"
    assert main(["fake", "--log", str(log), "--name", "a b"]) == 0
    command, timings = log.read_text().splitlines()
    assert command == f"fedstage fake --log {log} --name 'a b'"
    assert re.fullmatch(r"\d+\.\d\d s start-up, \d+\.\d\d s compute, \d+ MB", timings)
    figures = json.loads((log.parent / "a.record.json").read_text())
    assert figures["stage"] == "fake"
    assert figures["startup_s"] > 0
    assert figures["peak_memory_mb"] > 10


def test_error_of_the_user_is_1_and_one_line_shown_and_logged(fake_stage, tmp_path, capsys):
    log = tmp_path / "logs" / "a.log"
    assert main(["fake", "--name", "user", "--log", str(log)]) == 1
    message = "fedstage fake: client.epochs = 0: must be at least 1\n"
    assert capsys.readouterr() == ("", message)
    assert log.read_text() == message
    assert [path.name for path in log.parent.iterdir()] == ["a.log"]


def test_error_of_the_user_needs_no_log(fake_stage, capsys):
    assert main(["fake", "--name", "user"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_several_faults_are_a_line_each(fake_stage, capsys):
    assert main(["fake", "--name", "users"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "fedstage fake: here: a: missing",
        "here: b: missing",
    ]


def test_bugs_keep_their_traceback(fake_stage, capsys):
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main(["fake", "--name", "bug"])
    assert capsys.readouterr().err == ""


def test_a_bug_is_one_line_with_its_place_and_its_traceback_is_in_the_log(
    fake_stage, tmp_path, capsys, monkeypatch
):
    log = tmp_path / "a.log"
    assert main(["fake", "--name", "bug", "--log", str(log)]) == 1
    shown = capsys.readouterr().err
    assert re.fullmatch(
        r"fedstage fake: fedstage/\S+\.py, line \d+: ZeroDivisionError: a bug\n", shown
    )
    assert log.read_text().startswith(f"{shown}\nTraceback (most recent call last):\n")
    monkeypatch.setitem(PLUGINS.files, "fedstage_plugins.mine", Path(__file__))
    assert main(["fake", "--name", "bug", "--log", str(log)]) == 1
    assert f"fake: {__file__}, line " in capsys.readouterr().err


def test_an_interrupt_has_no_traceback(monkeypatch):
    def interrupted(command, arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["fedstage", "list"])
    monkeypatch.setattr(cli, "run_command", interrupted)
    assert main() == 130


# --- the process ----------------------------------------------------------------------------------


def fedstage(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fedstage.execution.cli", *arguments], capture_output=True, text=True
    )


def test_a_stage_runs_in_a_process_of_its_own(tmp_path):
    output, log = tmp_path / "out" / "rounds.parquet", tmp_path / "a.log"
    start = time.perf_counter()
    done = fedstage("participation", *PARTICIPATION, "--output", str(output), "--log", str(log))
    elapsed = time.perf_counter() - start
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = [client for round_ in (1, 2) for client in draw(10, 4, 3, round_).tolist()]
    assert load_table(output, ["client"]).to_pydict()["client"] == expected
    figures = json.loads((tmp_path / "a.record.json").read_text())
    assert 0.01 < figures["startup_s"] <= elapsed + 0.05
    assert figures["startup_s"] + figures["compute_s"] <= elapsed + 0.05


def test_startup_counts_from_the_start_of_the_process(tmp_path):
    code = (
        "import sys, time; time.sleep(0.5); "
        "from fedstage.execution.cli import main; main(sys.argv[1:])"
    )
    output, log = str(tmp_path / "rounds.parquet"), str(tmp_path / "a.log")
    arguments = ["participation", *PARTICIPATION, "--output", output, "--log", log]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    figures = json.loads((tmp_path / "a.record.json").read_text())
    assert figures["startup_s"] > 0.5


def test_startup_counts_from_when_the_command_was_given(fake_stage, tmp_path):
    log = tmp_path / "a.log"
    arguments = ["fake", "--name", "a", "--log", str(log)]
    assert main(arguments, started=time.perf_counter() - 100) == 0
    assert 100 <= json.loads((tmp_path / "a.record.json").read_text())["startup_s"] < 130


def test_error_of_the_user_ends_a_process_with_1_and_one_line(tmp_path):
    output = tmp_path / "rounds.parquet"
    arguments = ["--settings", json.dumps(PLAN | {"participants": 11}), *ROUNDS]
    done = fedstage("participation", *arguments, "--output", str(output))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line == "fedstage participation: participants = 11: from 1 to clients = 10"
    assert not output.exists()


@pytest.mark.parametrize(
    ("output", "reason"),
    [("folder", "Is a directory"), ("file/below", "File exists"), ("/proc/x/y", "No such")],
)
def test_a_file_that_cannot_be_written_ends_in_one_line(tmp_path, output, reason):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    path, log = tmp_path / output, tmp_path / "a.log"
    done = fedstage("participation", *PARTICIPATION, "--output", str(path), "--log", str(log))
    assert done.returncode == 1
    assert done.stderr.startswith(f"fedstage participation: {path}: cannot be written: {reason}")
    assert len(done.stderr.splitlines()) == 1
    assert log.read_text() == done.stderr


@pytest.mark.parametrize("limit", [0, 100, 1000])
def test_a_limit_of_file_size_ends_in_one_line_and_leaves_nothing(tmp_path, limit):
    """As a full disk does: also where the log, or the record, has no room."""
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}));"
        "from fedstage.execution.cli import main; raise SystemExit(main())"
    )
    arguments = ["participation", *PARTICIPATION, "--output", "o", "--log", "a.log"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    (told,) = done.stderr.splitlines()
    assert re.match(r"fedstage participation: \S+: cannot be written: .*File too large", told)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "variables",
    [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}],
    ids=["utf-8", "ascii"],
)
@pytest.mark.parametrize("closed", ["", ">&-", ">&- 2>&- <&-"])
def test_any_locale_and_closed_output_will_do(tmp_path, variables, closed):
    (tmp_path / "é").mkdir()
    options = '--settings \'{"név":"ß"}\' --output é/recipe.yaml --log é/recipe.log'
    command = f"'{sys.executable}' -m fedstage.execution.cli recipe {options} {closed}"
    subprocess.run(command, shell=True, cwd=tmp_path, env=os.environ | variables, check=True)
    assert yaml.safe_load((tmp_path / "é/recipe.yaml").read_text("utf-8"))["settings"] == {
        "név": "ß"
    }
    log = (tmp_path / "é/recipe.log").read_text("utf-8")
    assert log.startswith("fedstage recipe --settings '{")


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    code = f"'{sys.executable}' -m fedstage.execution.cli --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")
