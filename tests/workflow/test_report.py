"""The report of a finished run."""

import pytest

pytestmark = pytest.mark.workflow


def test_the_report_holds_table_and_figures_with_captions(copy):
    copy.make("--report", "report.html")
    report = (copy.path / "report.html").read_text(encoding="utf-8")
    for result in (
        "tables/tiny/default.html",
        "tiny/default_accuracy.png",
        "default_partition.png",
    ):
        assert result in report
    assert "own_mean" in report  # of the table's caption
    caption = (copy.path / "results/figures/tiny/default_accuracy.txt").read_text()
    assert caption.split(". ", 1)[1].strip() in report  # beside the picture, not in it
    assert "Snakemake" in report
