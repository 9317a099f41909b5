"""The report of a target: one file, made by snakemake like any other."""

import pytest

pytestmark = pytest.mark.workflow

REPORT = "results/report/tiny/default.html"


def test_a_report_has_all_that_is_known_of_its_cells(copy):
    copy.make(REPORT)
    text = (copy.path / REPORT).read_text(encoding="utf-8")
    assert len(text.encode()) < 1e6
    for section in ("table", "origin", "settings"):
        assert f'href="#{section}"' in text
        assert f'<h2 id="{section}">' in text
    assert f"snakemake --cores all {REPORT}" in text
    assert text.count("<details>") == 4  # the partition, and each method
    assert text.count("<svg") == 2  # curves and the partition
    settings = text.partition('<h2 id="settings">')[2]
    for name in ("rounds", "clients", "client.batch_size"):
        assert f"<code>{name}</code>" in settings


def test_deleted_logs_are_no_fault(copy):
    for record in copy.path.glob("results/logs/evaluation/**/*.json"):
        record.unlink()
    copy.make(REPORT)
    text = (copy.path / REPORT).read_text(encoding="utf-8")
    assert "<dt>Versions</dt><dd>not recorded</dd>" in text
