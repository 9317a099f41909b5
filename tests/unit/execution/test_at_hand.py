"""Completion in a shell."""

import subprocess

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
