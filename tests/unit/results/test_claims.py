"""Verdicts of claims."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.errors import FedstageError
from fedstage.results.claims import claim_rows, claim_tables, judge_claims
from fedstage.results.documents import as_markdown
from fedstage.settings.scores import ClaimsToJudge


def claims_of(*claims):
    same = {"text": "T.", "place": "P", "experiment": "e"}
    return ClaimsToJudge.model_validate({"claims": [same | claim for claim in claims]})


ABOVE = {"id": "above", "greater": {"method": "fedsdd"}, "than": {"method": "fedavg"}}


def test_a_claim_holds_where_each_comparison_is_as_claimed(tidy):
    (judged,) = judge_claims(claims_of(ABOVE | {"where": {"partition.alpha": 0.1}}), tidy)
    differences = np.subtract(ACCURACIES["fedsdd", 0.1], ACCURACIES["fedavg", 0.1])
    assert judged.verdict == "holds"
    expected = 2 * stats.ttest_1samp(differences, 0, alternative="greater").pvalue
    assert judged.p["holds"] == pytest.approx(expected)


def test_the_p_value_of_an_undecided_effect_is_of_the_t_test(tidy):
    (judged,) = judge_claims(
        claims_of(ABOVE | {"where": {"partition.alpha": 1.0}, "margin": 1.5}), tidy
    )
    differences = np.subtract(ACCURACIES["fedsdd", 1.0], ACCURACIES["fedavg", 1.0])
    assert (judged.verdict, judged.p["practically nil"] < judged.p["holds"]) == ("undecided", True)
    (row,) = claim_rows([judged], "top1_accuracy").to_dict("records")
    assert row["p"] == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)


def test_primary_claims_are_corrected_together_and_missing_ones_count(tidy):
    claim = ABOVE | {"where": {"partition.alpha": 0.1}, "primary": True, "margin": 0.5}
    listed = claims_of(claim)
    family = {"claims": ["above"], "primary": 5}
    five = ClaimsToJudge.model_validate(listed.model_dump() | {"families": [family]})
    (alone,), (corrected,) = judge_claims(listed, tidy), judge_claims(five, tidy)
    assert corrected.p["holds"] == pytest.approx(min(1.0, 5 * alone.p["holds"]))


def test_a_cell_with_a_run_that_never_reaches_its_goal_is_not_measured(tidy):
    frame = tidy.frame.copy()
    last = (frame["method"] == "fedsdd") & (frame["seed"] == 0) & (frame["round"] == 2)
    frame.loc[last, "value"] = np.inf
    (judged,) = judge_claims(claims_of(ABOVE), tidy._replace(frame=frame))
    assert judged.verdict == "not measured"


def test_a_metric_that_nothing_has_is_refused(tidy):
    with pytest.raises(FedstageError, match="metric = 'params': not measured; use one of"):
        judge_claims(claims_of(ABOVE | {"metric": "params"}), tidy)


def test_the_tables_have_a_line_for_each_claim_and_comparison():
    tidy = tidy_of(ACCURACIES)
    judged = judge_claims(claims_of(ABOVE, ABOVE | {"id": "mean", "quantifier": "mean"}), tidy)
    summary, comparisons = claim_tables(judged, tidy.header)
    assert summary.shown["Comparisons"].tolist() == ["2 of 2, holds in 1", "2 of 2"]
    assert comparisons.shown["Comparison"].tolist()[0] == "FedSDD − FedAvg at α = 0.1 > 0"
    assert comparisons.shown["Verdict"].tolist()[:2] == ["holds", "undecided"]
    rows = claim_rows(judged, "top1_accuracy")
    assert rows["comparison"].tolist().count("mean of 2") == 1
    assert pd.api.types.is_float_dtype(rows["mean"])
    assert as_markdown([summary, comparisons]).count("\n## ") == 1
