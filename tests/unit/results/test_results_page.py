"""The script of the page of results, on the committed scores."""

import re
import runpy
import shutil

import pandas as pd
import pytest
from scipy import stats
from tests.shared.experiments import WORKFLOW

from fedstage.errors import FedstageError

RESULTS = WORKFLOW / "docs/results"
SCRIPT = WORKFLOW / "scripts/results_page.py"
#: A small experiment, and a comparison of it.
NAME = "bkd_two_edges"


def make(folder, workflow=WORKFLOW):
    runpy.run_path(str(SCRIPT))["main"](folder, workflow)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The workflow with the paper of the small experiment alone: all take long to resolve."""
    folder = tmp_path_factory.mktemp("workflow")
    (folder / "experiments").mkdir()
    shutil.copy(WORKFLOW / "methods.yaml", folder)
    shutil.copytree(WORKFLOW / "papers/bkd", folder / "papers/bkd")
    return folder


def copied(folder, *files):
    """Copy the scores of the small experiment into a folder; return its own folder."""
    (folder / NAME).mkdir()
    for file in ("scores.parquet", *files):
        shutil.copy(RESULTS / NAME / file, folder / NAME)
    return folder / NAME


@pytest.mark.slow
def test_the_committed_texts_are_what_the_script_makes(tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder)
    texts = sorted(folder.rglob("*.md"))
    assert len(texts) > 30
    for text in texts:
        text.unlink()
    make(folder)
    assert sorted(folder.rglob("*.md")) == texts
    for text in texts:
        assert text.read_text() == (RESULTS / text.relative_to(folder)).read_text(), text


def cells_of_tables(path):
    """The cells of all lines of a text's Markdown tables, without those of headings and rules."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells for cells in found if cells[0] != "Claim" and not cells[0].startswith(":-")]


def test_the_page_has_the_verdicts_of_the_claims_that_it_links_to():
    shown = {}
    for about, *_, verdict in cells_of_tables(RESULTS / "README.md"):
        if linked := re.search(r"\(([\w/]+)/claims\.md\)", about):
            shown.setdefault(linked[1], []).append(verdict)
    assert len(shown) > 10
    for name, verdicts in shown.items():
        claims = cells_of_tables(RESULTS / name / "claims.md")
        primary = [cells[4] for cells in claims if cells[0].endswith(" (primary)")]
        assert primary == verdicts, name


def test_the_page_has_the_interval_of_scipy():
    scores = pd.read_parquet(RESULTS / NAME / "scores.parquet")
    scores = scores[(scores["measure"] == "top1_accuracy") & (scores["role"] == "test")]
    scores = scores.sort_values("round")
    last = scores.groupby(["method", "seed"])["value"].last().unstack("method")
    test = stats.ttest_rel(last["bkd_late"], last["kd"])
    low, high = test.confidence_interval()
    mean = (last["bkd_late"] - last["kd"]).mean()
    page = (RESULTS / "README.md").read_text()
    assert f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]; {len(last)} seeds" in page


def test_files_are_joined_with_pandas_as_the_script_says(tmp_path):
    path = copied(tmp_path) / "scores.parquet"
    again = tmp_path / "again.parquet"
    pd.read_parquet(path).assign(machine="another", seconds=1.0).to_parquet(again)
    before = pd.read_parquet(path)
    lines = runpy.run_path(str(SCRIPT))["__doc__"].split("files = [")[1].splitlines()[1:4]
    names = {"files": [path, again], "pd": pd}
    exec("\n".join(line.strip() for line in lines), names)
    pd.testing.assert_frame_equal(pd.read_parquet(path), before)
    assert pd.read_parquet(path).attrs == before.attrs


def test_only_the_first_ten_seeds_count(tmp_path, alone):
    path = copied(tmp_path) / "scores.parquet"
    scores = pd.read_parquet(path)
    last = scores[scores["seed"] == 7]
    fewer = {8, 9} - set(scores["seed"])
    more = [last.assign(seed=99, value=1.0), *(last.assign(seed=seed) for seed in fewer)]
    joined = pd.concat([scores, *more])
    joined.attrs = scores.attrs
    joined.to_parquet(path)
    make(tmp_path, alone)
    assert "; 10 seeds" in (tmp_path / "README.md").read_text()


def test_scores_of_no_run_are_refused(tmp_path, alone):
    path = copied(tmp_path) / "scores.parquet"
    scores = pd.read_parquet(path)
    scores.replace({"method": {"kd": "kdd"}}).to_parquet(path)
    with pytest.raises(FedstageError, match=rf"{NAME}: .*'kdd', '0'.*: no run of the experiment"):
        make(tmp_path, alone)
