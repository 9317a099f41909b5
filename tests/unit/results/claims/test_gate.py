import pytest

from fedstage.errors import FedstageError
from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.effects import HOLDS, NOT_MEASURED
from fedstage.results.claims.gate import NO_REGIME, fault_of, without_regime
from fedstage.results.claims.library import check_gate
from fedstage.results.claims.report import render_report
from fedstage.results.claims.verdicts import judge
from fedstage.settings.claims import Claim, Gate

GATE = Gate(above={"method": "fedavg", "alpha": 1}, below={"method": "ghofl", "alpha": 1})
CLAIM = Claim(
    id="i",
    text="t",
    place="p",
    experiment="e",
    greater={"method": "fedavg"},
    than={"method": "ghofl"},
    where={"alpha": 1},
)


def cells(fedavg, ghofl, data="a"):
    place = {"data": data, "alpha": 1}
    return [
        Cell({"method": "fedavg", **place}, dict(enumerate(fedavg))),
        Cell({"method": "ghofl", **place}, dict(enumerate(ghofl))),
        Cell({"method": "fedavg", "data": data, "alpha": 0.1}, {0: 1.0}),
        Cell({"method": "ghofl", "data": data, "alpha": 0.1}, {0: 90.0}),
    ]


def test_a_gate_is_about_the_mean_over_seeds():
    assert fault_of(GATE, "e", cells([60.0, 50.0], [51.0, 51.0])) is None
    fault = fault_of(GATE, "e", cells([50.0, 51.0], [60.0, 50.0]))
    assert fault == (
        "**The regime decides nothing**: fedavg 1 − ghofl 1 is −4.50, and must be above 0."
    )
    assert fault_of(GATE, "e", cells([50.0], [50.0])) is not None


def test_every_data_set_must_hold():
    good, bad = cells([60.0], [50.0]), cells([60.0], [62.0], "b")
    assert fault_of(GATE, "e", good + cells([61.0], [60.0], "b")) is None
    assert "data = b is −2.00" in fault_of(GATE, "e", good + bad)


def test_a_gate_without_measurements_does_not_hold():
    assert "is not measured" in fault_of(GATE, "e", cells([60.0], []))
    assert "no cells" in fault_of(GATE, "e", cells([60.0], [50.0])[2:])


def test_nothing_is_decided_without_a_regime():
    judged = judge(CLAIM, cells([60.0, 61.0, 62.5], [50.0, 51.0, 52.0]))
    assert judged.verdict == HOLDS
    changed = without_regime(judged)
    assert changed.verdict == NO_REGIME == "undecided (regime)"
    assert [effect.verdict for effect in changed.effects] == [NO_REGIME]
    assert f"| {NO_REGIME} |" in render_report([changed], "T", "S", [])
    unmeasured = without_regime(judge(CLAIM, cells([], [])))
    assert unmeasured.verdict == NOT_MEASURED


def test_a_gate_names_cells_of_its_scale():
    points = [{**cell.axes, "seed": 0} for cell in cells([], [])]
    check_gate("e/study: gate", "e", GATE, points)
    with pytest.raises(FedstageError, match=r"^e/study: gate: method = 'fedavgg': no cell of e"):
        check_gate(
            "e/study: gate", "e", Gate(above={"method": "fedavgg"}, below={"alpha": 1}), points
        )
