"""The numbers of a committed study, by scipy from its rows, and as earlier versions gave them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from tests.shared.experiments import WORKFLOW

from fedstage.experiments.claims import load_claims
from fedstage.results.claims import judge_claims
from fedstage.results.summary import summarise
from fedstage.results.table import BEST, STAR, score_table
from fedstage.results.tidy import read_tidy
from fedstage.results.verdicts import decide
from fedstage.settings.scores import ClaimsToJudge

FILE = WORKFLOW / "docs/results/fedeed_table4/scores.parquet"
#: Mean, deviation, seeds, and the difference to the published number with its interval.
BEFORE = {
    ("fedavg", 1.0): (61.00, 0.83, 10, -27.53, -28.24, -26.82),
    ("scaffold", 1.0): (61.10, 0.34, 2, -28.75, -29.96, -27.54),
    ("fedavg", 0.1): (52.54, 1.36, 10, -26.18, -31.29, -21.07),
    ("fedsdd_r4", 0.1): (48.84, 1.71, 10, -33.37, -35.47, -31.26),
}
#: The verdict of a claim and its p-value; the mean effect, its interval and seeds of a comparison.
JUDGED_BEFORE = {
    "above_fedprox": ("contradicted", 0.014, (-0.70, -1.72, 0.32, 2)),
    "four_checkpoints_help": ("undecided", 0.456, (0.31, -0.59, 1.21, 10)),
}


@pytest.fixture(scope="module")
def study():
    return read_tidy(FILE, sealed=False)


@pytest.fixture(scope="module")
def last():
    """The final accuracies by seed, a column for each method and alpha, with pandas alone."""
    frame = pd.read_parquet(FILE)
    rows = frame[(frame["measure"] == "top1_accuracy") & (frame["round"] == 40)]
    return rows.pivot(index="seed", columns=["method", "partition.alpha"], values="value")


def test_means_deviations_and_welchs_intervals(study, last):
    rows = summarise(study).to_dict("records")
    assert len(rows) == len(last.columns)
    for row in rows:
        values = last[row["method"], row["partition.alpha"]].dropna()
        assert row["seeds"] == len(values)
        assert row["top1_accuracy"] == pytest.approx(values.mean(), rel=1e-12)
        assert row["std"] == pytest.approx(values.std(), rel=1e-9)
        n, paper = int(row["published_seeds"]), (row["published"], row["published_std"])
        test = stats.ttest_ind_from_stats(
            values.mean(), values.std(), len(values), *paper, n, equal_var=False
        )
        error = (values.var() / len(values) + paper[1] ** 2 / n) ** 0.5
        degrees = error**4 / sum(
            (var / m) ** 2 / (m - 1) for var, m in ((values.var(), len(values)), (paper[1] ** 2, n))
        )
        assert test.pvalue == pytest.approx(2 * stats.t.sf(abs(test.statistic), degrees))
        half = stats.t.ppf(0.975, degrees) * error
        ends = (row["difference_low"], row["difference_high"])
        difference = values.mean() - paper[0]
        assert ends == pytest.approx((difference - half, difference + half), rel=1e-9)


def test_stars_are_what_holms_paired_tests_do_not_tell_from_the_best(study, last):
    table = score_table(study)
    methods = list(dict.fromkeys(summarise(study)["method"]))
    columns = [i for i, name in enumerate(table.shown) if "±" in table.shown.iloc[0, i]][::2]
    for column, alpha in zip(columns, (1.0, 0.1), strict=True):
        means = last.xs(alpha, level="partition.alpha", axis="columns")
        best = means.mean().idxmax()
        others = [method for method in methods if method != best]
        p_values = []
        for method in others:
            both = means[[best, method]].dropna()
            p_values.append(stats.ttest_rel(both[best], both[method]).pvalue)
        adjusted = dict(zip(others, multipletests(p_values, method="holm")[1], strict=True))
        marks = {methods[line]: mark for (line, of), mark in table.marks.items() if of == column}
        assert marks.pop(best) == BEST
        assert marks == {method: STAR for method, p in adjusted.items() if p > 0.05}


def test_claims_have_the_paired_tests_p_values_and_intervals(study, last):
    claim = {"id": "above", "text": "T.", "place": "P", "experiment": "e", "margin": 0.5}
    claim |= {"greater": {"method": "fedsdd_r1"}, "than": {"method": "fedavg"}}
    (judged,) = judge_claims(ClaimsToJudge.model_validate({"claims": [claim]}), study)
    worst = []
    for alpha, effect in zip((1.0, 0.1), judged.comparisons, strict=True):
        differences = (last["fedsdd_r1", alpha] - last["fedavg", alpha]).dropna()
        interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        expected = (differences.mean(), interval.low, interval.high, len(differences))
        assert effect.measured == pytest.approx(expected, rel=1e-9)
        worst.append(stats.ttest_1samp(differences, 0, alternative="less").pvalue)
    assert judged.verdict == "contradicted"
    assert judged.p["contradicted"] == pytest.approx(min(1.0, 2 * 2 * min(worst)), rel=1e-9)


def test_numbers_are_those_of_before(study):
    rows = summarise(study).set_index(["method", "partition.alpha"])
    columns = ["top1_accuracy", "std", "seeds", "difference", "difference_low", "difference_high"]
    for place, expected in BEFORE.items():
        assert np.round(rows.loc[place, columns].astype(float), 2).tolist() == list(expected)


def test_verdicts_are_those_of_before(study):
    claims = [one.claim for one in load_claims([], WORKFLOW / "papers")]
    wanted = [
        one for one in claims if one.experiment == "fedeed_table4" and one.id in JUDGED_BEFORE
    ]
    for judged in judge_claims(ClaimsToJudge(claims=wanted), study):
        verdict, p_value, measured = JUDGED_BEFORE[judged.claim.id]
        assert decide(judged.p) == verdict  # about the paper, if it is of the regime
        assert round(min(judged.p.values()), 3) == p_value
        assert np.round(judged.comparisons[0].measured, 2).tolist() == list(measured)
