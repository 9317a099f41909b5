"""The report of a target: one file, made by snakemake like any other."""

import re

import pytest

pytestmark = pytest.mark.workflow

REPORT = "results/report/tiny/default.html"


def test_a_report_has_all_that_is_known_of_its_cells(copy):
    copy.make(REPORT)
    text = (copy.path / REPORT).read_text(encoding="utf-8")
    assert len(text.encode()) < 5e6
    for section in ("table", "figures", "runs", "settings"):
        assert f'href="#{section}"' in text
        assert f'<h2 id="{section}">' in text
    assert f"snakemake --cores all {REPORT}" in text
    for metrics in copy.files("results/training/*/metrics/*/*.parquet"):
        assert str(metrics) in text
    folds = re.findall(r'<details class="folded" id="(cell-\d+)">(.*?)</details>', text, re.DOTALL)
    assert len(folds) == 3
    for name, inside in folds:
        assert f'<td><a href="#{name}">' in text
        (source,) = re.findall("<dt>source</dt><dd>(.*?)</dd>", inside)
        assert source.endswith("the same now")
        for known in ("by stage evaluation", "start-up", "seed: 0", "models"):
            assert known in inside or known in text.partition('<h2 id="settings">')[2]
    assert "unchanged" in folds[0][1]
    settings = text.partition('<h2 id="settings">')[2]
    for name in ("rounds", "clients", "participants of a round", "local training", "seeds"):
        assert f"<dt>{name}</dt>" in settings


def test_deleted_logs_are_told_and_are_no_fault(copy):
    for record in copy.path.glob("results/logs/evaluation/**/*.json"):
        record.unlink()
    copy.make(REPORT)
    text = (copy.path / REPORT).read_text(encoding="utf-8")
    assert "no record below results/logs of a job that made it" in text
