"""The report of a finished run."""

import pytest

pytestmark = pytest.mark.workflow


def test_the_report_holds_tables_and_figures(copy):
    copy.make("--report", "report.html")
    report = (copy.path / "report.html").read_text(encoding="utf-8")
    for result in (
        "tables/tiny/default.csv",
        "tiny/default_accuracy.png",
        "default_partition.png",
    ):
        assert result in report
    assert "Snakemake" in report
