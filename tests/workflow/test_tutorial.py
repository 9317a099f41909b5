"""The tutorial, followed literally in a fresh copy of the project; and its notebook."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "workflow/docs/tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
VERDICTS = ("higher", "lower", "undecided")
#: What a working copy has in addition to a fresh one.
OWN = (".git", ".venv", ".snakemake", "results", "data", "uv.lock", "__pycache__", ".*_cache")


def environment():
    """The environment of a user for whom `uv run` has nothing to install."""
    return os.environ | {"UV_PROJECT_ENVIRONMENT": sys.prefix, "UV_NO_SYNC": "1"}


def follow(block, folder):
    """Return what the commands of a block print."""
    done = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=folder, env=environment(), text=True, timeout=1800,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


def plain(line):
    """Return a line without its numbers, which may be others, and what follows from them."""
    line = re.sub(rf"\b({'|'.join(VERDICTS)})\b", "verdict", line)
    text = re.sub(r"[-−+]?\d+(?:\.\d+)?", "0", " ".join(line.split()))
    return re.sub(r"\*\*(0 ± 0)\*\*|(0 ± 0) \*", r"\1\2", text)


def pattern(shown):
    """Return what a line of the page matches: `...` is what is left out."""
    text = plain(shown)
    return re.compile(re.escape(text.removesuffix("...")) + (".*" if text.endswith("...") else ""))


def missing(shown, printed):
    """Return the lines of the page that were not printed, in their order."""
    lines = iter([plain(line) for line in printed.splitlines()])
    return [
        line
        for line in shown.splitlines()
        if line != "..." and not any(pattern(line).fullmatch(found) for found in lines)
    ]


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("uv"), reason="the page calls uv")
def test_each_command_prints_what_the_page_shows(tmp_path):
    """After fewer rounds and seeds, as the numbers are not compared."""
    folder = tmp_path / "fedstage"
    shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns(*OWN), symlinks=True)
    printed = ""
    for language, content in BLOCKS:
        content = content.replace("rounds: 5\n", "rounds: 2\n").replace("0, 1, 2, 3", "0, 1")
        if language == "bash":
            printed = follow(content, folder)
        elif language == "text":
            assert missing(content, printed) == [], printed
        elif name := re.match(r"# (\S+\.\w+)\n", content):
            (folder / name[1]).write_text(content)
    for path in re.findall(r"`(results/\S+\.\w+)`", PAGE):
        assert (folder / path).stat().st_size > 0


def test_lines_that_are_not_printed_are_found():
    printed = "a  1.5 kB\nb -3\nc, in 4 s\n"
    assert missing("a 2.25 kB\n...\nc, in ...\n", printed) == []
    assert missing("a 2.25 MB\n", printed) == ["a 2.25 MB"]
    assert missing("| a | **1.5 ± 2** |", "| a |  3 ± 1.2 * |\n") == []
    assert missing("b 3\na 1 kB\n", printed) == ["a 1 kB"]


def test_the_notebook_is_the_page():
    notebook = runpy.run_path(str(REPOSITORY / ".ci/notebook.py"))["notebook"]
    found = (REPOSITORY / "workflow/docs/tutorial.ipynb").read_text(encoding="utf-8")
    assert found == notebook(PAGE), "call: uv run python .ci/notebook.py"
