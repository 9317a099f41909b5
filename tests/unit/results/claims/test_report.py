import pytest

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.families import correct
from fedstage.results.claims.report import render_report
from fedstage.results.claims.table import SCHEMA, claim_rows
from fedstage.results.claims.verdicts import judge
from fedstage.results.tables import html
from fedstage.settings.claims import Claim

CELLS = [
    Cell({"method": "a", "alpha": 1.0}, {0: 70.0, 1: 72.0, 2: 71.0}, 89.0),
    Cell({"method": "b", "alpha": 1.0}, {0: 60.0, 1: 61.0, 2: 61.5}, 88.5),
    Cell({"method": "a", "alpha": 0.1}, {0: 50.0, 1: 53.0, 2: 51.0}, 78.0),
    Cell({"method": "b", "alpha": 0.1}, {0: 51.0, 1: 51.0, 2: 51.5}, 78.5),
    Cell({"method": "c", "alpha": 0.1}, {0: 51.0}),
]
ABOUT = {"text": "A is <above> B.", "place": "Table 2", "experiment": "e"}
CLAIMS = [
    Claim(id="above", greater={"method": "a"}, than={"method": "b"}, **ABOUT),
    Claim(id="ratio", ratio={"method": "a"}, to={"method": "b"}, at_most=1.3, **ABOUT),
    Claim(id="single", less={"method": "c"}, than={"method": "b"}, **ABOUT),
    Claim(id="stated", value={"method": "c"}, at_least=50, at_most=60, stated=(50, 55), **ABOUT),
    Claim(id="elsewhere", greater={"method": "a"}, than={"method": "d"}, **ABOUT),
]
JUDGED = correct([judge(claim, CELLS, claimed=3) for claim in CLAIMS])


def table(text, heading):
    """The cells of the Markdown table that begins with a heading."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {heading}"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def report():
    return render_report(JUDGED, "The claims", "Of `e`.", ["Measured at scale `mini`."])


def test_the_summary_has_a_line_a_claim():
    none = "holds in 0 of 1 made, 2 not made"
    one, two = "holds in 1 of 2 made, 1 not made", "holds in 2 of 2 made, 1 not made"
    assert table(report(), "Claim ") == [
        ["above", "Table 2", "no (1 of 2)", "undecided", one, "1.000"],
        # p = 0.0037 of the weaker ratio, the smallest of four claims.
        ["ratio", "Table 2", "yes (2 of 2)", "holds where measured", two, "0.015"],
        ["single", "Table 2", "–", "undecided", none, "1.000"],
        ["stated", "Table 2", "yes (1 of 1)", "undecided", none, "1.000"],
        ["elsewhere", "Table 2", "–", "not measured", "3 not made", "–"],
    ]  # fmt: skip


def test_a_claim_about_a_mean_says_of_how_many():
    claim = CLAIMS[0].model_copy(update={"quantifier": "mean"})
    text = render_report([judge(claim, CELLS, claimed=5)], "T", "S.", [])
    assert table(text, "Claim ")[0][4] == "mean of 2, 3 not made"


def test_comparisons_have_their_interval_and_verdict():
    text = report().split("## Comparisons")[1]
    recipes = table(text, "Claim")
    assert recipes[0] == [
        "above", "a − b at alpha = 1 > 0", "+0.50", "+10.17 [+8.27, +12.06]", "3", "holds",
    ]  # fmt: skip
    assert recipes[1][2:] == ["−0.50", "+0.17 [−3.83, +4.16]", "3", "undecided"]
    assert recipes[2][1:4] == ["a / b at alpha = 1 ≤ 1.3", "1.01", "1.17 [1.14, 1.20]"]
    assert recipes[4] == ["single", "c − b < 0", "–", "+0.00", "1", "undecided"]
    assert recipes[5] == ["stated", "c ≥ 50, ≤ 60", "50.00 to 55.00", "51.00", "1", "undecided"]
    assert len(recipes) == 6


def test_the_report_says_what_was_claimed_and_measured():
    text = report()
    assert text.startswith("# The claims\n\nOf `e`.\n\n| Claim")
    assert "- **above**: A is &lt;above> B." in text
    assert text.endswith("- Measured at scale `mini`.\n")


def test_the_page_shows_the_same():
    page = render_report(JUDGED, "The claims", "Of `e`.", ["Measured at scale `mini`."], html)
    assert "<h2>The claims</h2>" in page
    assert "<td>+10.17 [+8.27, +12.06]</td>" in page
    assert "A is &lt;above&gt; B." in page
    assert "<li>Measured at scale <code>mini</code>.</li>" in page


def test_rows_have_exact_numbers():
    rows = claim_rows(JUDGED, "top1_accuracy")
    names = [row["claim"] for row in rows]
    assert names == ["above", "above", "ratio", "ratio", "single", "stated"]
    first, second, third, _, last, stated = rows
    assert first["mean"] == pytest.approx((10 + 11 + 9.5) / 3)
    assert (first["published"], first["published_holds"]) == (0.5, True)
    assert (second["published_holds"], second["claim_published_holds"]) == (False, False)
    assert {row["claim_verdict"] for row in rows[:2]} == {"undecided"}
    assert [row["claim_verdict"] for row in rows[2:4]] == ["holds where measured"] * 2
    assert {row["claim_p"] for row in rows[2:4]} == {JUDGED[1].p_value}
    assert {row["claim_not_made"] for row in rows[:4]} == {1}
    bounds = ("effect", "claimed_low", "claimed_high")
    assert [third[name] for name in bounds] == ["ratio", None, 1.3]
    assert [last[name] for name in bounds] == ["difference", None, 0.0]
    assert [first[name] for name in bounds] == ["difference", 0.0, None]
    assert [stated[name] for name in bounds] == ["value", 50.0, 60.0]
    assert (stated["stated_low"], stated["stated_high"], stated["published"]) == (50, 55, None)
    assert (last["stated_low"], last["stated_high"]) == (None, None)
    assert (last["low"], last["high"], last["seeds"]) == (None, None, 1)
    assert {row["metric"] for row in rows} == {"top1_accuracy"}
    assert all(list(row) == SCHEMA.names for row in rows)
