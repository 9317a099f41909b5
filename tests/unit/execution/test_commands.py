"""Commands that are no stages, and their completion in a shell."""

import inspect
import subprocess

import pytest

from fedstage.execution.cli import main
from fedstage.execution.commands import COMMANDS
from fedstage.plan.stages import STAGES


def test_every_command_has_a_function_of_its_options(capsys):
    for name, command in COMMANDS.items():
        given = command.options or [("arguments", {})]
        options = [about.get("dest", option.lstrip("-")) for option, about in given]
        parameters = inspect.signature(command.function).parameters.values()
        required = {one.name for one in parameters if one.default is inspect.Parameter.empty}
        assert required <= set(options) <= {one.name for one in parameters}, name
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])
        assert caught.value.code == 0
        assert f"fedstage {name} " in capsys.readouterr().out


@pytest.fixture
def complete(tmp_path, capsys):
    """A function that returns what bash offers for words, the last of them unfinished."""
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    place = tmp_path / "results/descriptions/quickstart"
    place.mkdir(parents=True)
    (place / "default.runs.json").write_text("{}")

    def offered(*words):
        quoted = " ".join(f"'{word}'" for word in ("fedstage", *words))
        ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _fedstage"
        ask += '; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", f"{script}\n{ask}"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    return offered


def test_every_command_and_stage_is_offered(complete):
    assert set(complete("")) == {*COMMANDS, *STAGES}
    assert complete("comp") == ["compare", "completion", "comparison"]


def test_kinds_targets_and_shells_are_offered(complete):
    assert complete("list", "ex") == ["experiments"]
    assert complete("list", "runs", "q") == ["quickstart/default"]
    assert complete("compare", "") == ["quickstart/default"]
    assert complete("compare", "x") == []
    assert complete("compare", "quickstart", "--to", "") == []  # a file
    assert complete("completion", "b") == ["bash"]
