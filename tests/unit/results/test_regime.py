"""A verdict is about a regime that the runs themselves show."""

import pytest
from tests.unit.results.conftest import ACCURACIES, tidy_of
from tests.unit.results.test_claims import ABOVE, claims_of

from fedstage.results.claims import judge_claims
from fedstage.results.regime import converging
from fedstage.results.table import score_table
from fedstage.settings.scores import Regime

BELOW = {"id": "below", "less": {"method": "fedsdd"}, "than": {"method": "fedavg"}}
AT = {"where": {"partition.alpha": 0.1}}


def trained(loss, rounds=9, **header):
    measures = {"training_loss": lambda method, _: None if method == "local_only" else loss}
    return tidy_of(ACCURACIES, rounds=rounds, measures=measures, **header)


@pytest.mark.parametrize(
    ("loss", "rounds", "regime", "outside"),
    [
        (0.1, 9, {"training_loss": 0.2}, False),
        (0.3, 9, {"training_loss": 0.2}, True),
        (None, 9, {"training_loss": 0.2}, True),  # what is not known is not shown
        (0.1, 9, {"rise": 3.0}, False),  # by one point a round, over rounds 7 to 9
        (0.1, 9, {"rise": 2.9}, True),
        (0.1, 1, {"rise": 2.9}, True),  # one round shows no rise
        (0.1, 9, {}, False),
    ],
)
def test_outside_of_a_papers_regime_nothing_is_contradicted(loss, rounds, regime, outside):
    claims = claims_of(ABOVE | AT | {"regime": regime}, BELOW | AT | {"regime": regime})
    above, below = judge_claims(claims, trained(loss, rounds))
    assert (above.outside, below.outside) == (outside, outside)
    expected = (
        ("holds, in another regime", "another regime") if outside else ("holds", "contradicted")
    )
    assert (above.verdict, below.verdict) == expected


def test_the_cells_of_a_claim_decide_and_only_federated_ones():
    tidy = trained(0.1)
    far = (tidy.frame["measure"] == "training_loss") & (tidy.frame["partition.alpha"] == 1.0)
    tidy.frame.loc[far, "value"] = 5.0
    regime = {"regime": {"training_loss": 0.2}}
    here, there = judge_claims(claims_of(ABOVE | AT | regime, ABOVE | {"id": "b"} | regime), tidy)
    assert (here.outside, there.outside) == (False, True)
    assert [tidy.header.cells[cell].axes["method"] for cell in converging(tidy).index] == [
        "fedavg", "fedsdd", "fedavg", "fedsdd",
    ]  # fmt: skip


def test_the_legend_says_what_the_runs_show_next_to_what_the_paper_speaks_of():
    table = score_table(trained(0.125, regime=Regime(training_loss=0.2, rise=2.0)))
    assert table.below[-1] == (
        "**Regime**: clients' training loss in the last round is 0.125 (converged: at most 0.2), "
        "and over the last third of the rounds the metric rises by 3.0 points (converged: at most "
        "2)."
    )
