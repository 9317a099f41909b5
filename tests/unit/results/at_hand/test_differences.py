"""Differences between rows of a table."""

from statistics import fmean

import pandas as pd
import pytest
from measured import write_metrics
from scipy.stats import ttest_rel

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.results import compare
from fedstage.results.at_hand.differences import write
from fedstage.storage.files import load_json, save_json

ACCURACIES = {
    "fedsdd": [70.0, 72.0, 71.0],
    "fedavg": [60.0, 61.0, 61.5],
    "fedprox": [59.0, 63.0, 61.0],
}


def test_rows_are_paired_over_seeds_and_p_values_corrected(folder):
    frame = compare("tiny/mini", folder=folder)
    assert len(frame) == 2 * 3  # of three rows in two columns
    first = frame[frame["column"] == "α = 0.1"]
    assert list(zip(first["row"], first["than"], strict=True)) == [
        ("FedSDD", "FedAvg"),
        ("FedSDD", "fedprox"),
        ("FedAvg", "fedprox"),
    ]
    plain = ttest_rel(ACCURACIES["fedsdd"], ACCURACIES["fedavg"])
    interval = plain.confidence_interval(0.95)
    row = first.iloc[0]
    assert row["difference"] == pytest.approx(
        fmean(ACCURACIES["fedsdd"]) - fmean(ACCURACIES["fedavg"])
    )
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert row["p"] == pytest.approx(6 * plain.pvalue)  # Holm: the smallest of six
    assert row["seeds"] == 3
    assert row["verdict"] == "higher"


def test_two_seeds_that_differ_by_the_same_decide_nothing(folder):
    path = folder / "results/descriptions/tiny/mini.runs.json"
    content = load_json(path)
    runs = [run for run in content["runs"] if run["settings"]["seed"] < 2]
    save_json(path, content | {"runs": runs})
    for run in runs:
        score = 40.2 + run["settings"]["seed"] + 2.67 * (run["settings"]["method"] == "fedsdd")
        write_metrics(folder / run["metrics"], [9.0, score], auc=[None] * 2)
    frame = compare("tiny/mini", folder=folder)
    assert list(frame["difference"][:3]) == pytest.approx([2.67, 2.67, 0.0])
    assert frame["low"].isna().all()
    assert set(frame["p"]) == {1.0}
    assert list(frame["verdict"][:3]) == ["undecided", "undecided", "identical"]
    assert " to " not in write(frame)


def test_a_baseline_is_compared_with_every_other_row_and_nothing_else(folder):
    frame = compare("tiny/mini", baseline="fedavg", folder=folder)
    assert list(zip(frame["row"], frame["than"], frame["column"], strict=True)) == [
        (row, "FedAvg", column) for column in ("α = 0.1", "α = 1") for row in ("FedSDD", "fedprox")
    ]
    plain = ttest_rel(ACCURACIES["fedsdd"], ACCURACIES["fedavg"])
    assert frame["p"].min() == pytest.approx(4 * plain.pvalue)  # Holm: the smallest of four
    assert (frame["difference"].iloc[0], frame["verdict"].iloc[0]) == (
        pytest.approx(71 - 182.5 / 3), "higher",
    )  # fmt: skip
    one = compare("tiny/mini", ["fedsdd"], baseline="fedavg", folder=folder)
    assert list(one["row"]) == ["FedSDD", "FedSDD"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": ["feddf"]}, "rows: 'feddf': no such row; use fedsdd, fedavg, fedprox"),
        ({"rows": ["fedavg"]}, "there are no two rows to compare"),
        ({"metric": "speed"}, "metric = 'speed': not measured; use one of"),
        ({"baseline": "feddf"}, "baseline: 'feddf': no such row; use fedsdd, fedavg, fedprox"),
        ({"rows": ["fedavg"], "baseline": "fedavg"}, "there are no two rows to compare"),
    ],
)
def test_what_cannot_be_compared_is_one_line(folder, options, message):
    with pytest.raises(FedstageError) as error:
        compare("tiny/mini", folder=folder, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_writes_a_table_for_papers_or_programs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    command = ["compare", "tiny/mini", "--baseline", "fedavg", "--to"]
    assert main([*command, "d.csv"]) == 0
    exact = pd.read_csv("d.csv")
    pd.testing.assert_frame_equal(exact, compare("tiny/mini", baseline="fedavg"))
    assert capsys.readouterr().out == "4 comparisons are in d.csv\n"
    assert main([*command, "d.tex"]) == 0
    text = (folder / "d.tex").read_text(encoding="utf-8")
    assert r"\begin{tabular}{lllrrrrl}" in text
    assert r"FedSDD & FedAvg & $\alpha$ = 0.1 & 3 & +10.17 & " in text
    assert "paired over seeds" in text
    assert "for the 4 comparisons of this table (Holm 1979)" in text
    assert r"\caption{Tiny. Differences of Top-1 accuracy (\%)" in text
    assert main([*command, "d.tex", "--metric", "loss"]) == 0
    assert "Differences of loss between" in (folder / "d.tex").read_text(encoding="utf-8")
    assert main([*command, "d.md"]) == 1
    assert "--to = d.md: must end in .tex or .csv" in capsys.readouterr().err
