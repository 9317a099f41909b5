"""Completion in a shell, and answers that nobody reads to their end."""

import subprocess
import sys

import pytest

from fedstage.execution.cli import COMMANDS, main
from fedstage.plan.stages import STAGES


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
    assert complete("completion", "b") == ["bash"]


def test_an_answer_that_is_cut_off_is_no_error():
    command = f"{sys.executable} -m fedstage.execution.cli list methods"
    config = "--workflow workflow"
    done = subprocess.run(
        ["bash", "-c", f"{command} {config} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=__file__.rpartition("/tests/")[0],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
