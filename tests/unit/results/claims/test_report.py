import pytest

from fedstage.results.claims.comparisons import Cell
from fedstage.results.claims.families import correct
from fedstage.results.claims.looks import nominal_level
from fedstage.results.claims.power import seeds_for
from fedstage.results.claims.report import render_report
from fedstage.results.claims.table import SCHEMA, claim_rows
from fedstage.results.claims.verdicts import judge
from fedstage.results.tables import html
from fedstage.settings.claims import Claim

CELLS = [
    Cell({"method": "a", "alpha": 1.0}, {0: 70.0, 1: 72.0, 2: 71.0}, 89.0, 0.5, 3),
    Cell({"method": "b", "alpha": 1.0}, {0: 60.0, 1: 61.0, 2: 61.5}, 88.5, 0.4, 3),
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
        [
            *("above", "Table 2", "no (1 of 2)", "undecided after 3 seeds, would need 119"),
            *(one, "1.000", "exploratory", "1 of 1 as claimed, 0 with p ≤ 0.05, 0 after Holm"),
        ],
        # p = 0.0037 of the weaker ratio, the smallest of four claims.
        [
            *("ratio", "Table 2", "yes (2 of 2)", "holds where measured", two, "0.015"),
            *("exploratory", "–"),
        ],
        ["single", "Table 2", "–", "undecided after 1 seed", none, "1.000", "exploratory", "–"],
        [
            *("stated", "Table 2", "yes (1 of 1)", "undecided after 1 seed", none, "1.000"),
            *("exploratory", "–"),
        ],
        ["elsewhere", "Table 2", "–", "not measured", "3 not made", "–", "exploratory", "–"],
    ]


def test_a_primary_claim_has_its_mean_and_then_its_cells():
    claim = CLAIMS[0].model_copy(update={"primary": True, "margin": 2.0})
    cells = [*CELLS[:3], Cell(CELLS[3].axes, CELLS[3].values)]
    judged = correct([judge(claim, cells, claimed=2, looks=[3, 6])])
    text = render_report(judged, "T", "S.", [])
    first = table(text, "Claim ")[0]
    # Of +4.5, +6.5 and +4.5, p = 0.016: enough for one look, and too much for the first of two.
    needed = seeds_for(0.5 / (4 / 3) ** 0.5, nominal_level(0.05, 1, (3, 6)))
    assert first[3] == f"undecided after 3 seeds, next look at 6, would need {needed}"
    assert (first[4], first[6]) == ("mean of 2", "primary")
    lines = table(text.split("## Comparisons")[1], "Claim")
    assert [line[1] for line in lines] == [
        *("mean of 2 > 0", "a − b at alpha = 1 > 0", "a − b at alpha = 0.1 > 0")
    ]
    assert [line[5] for line in lines] == ["undecided", "not tested", "not tested"]
    assert "Claims are judged at 3, 6 seeds" in text
    rows = claim_rows(judged, "top1_accuracy")
    assert [row["kind"] for row in rows] == ["primary", "cell", "cell"]
    assert {row["margin"] for row in rows} == {2.0}
    assert "first look at 5" in render_report(
        correct([judge(claim, CELLS, looks=[5, 10])]), "T", "S.", []
    )


def test_what_the_paper_has_no_number_for_is_left_out_with_a_note():
    cells = [*CELLS[:3], Cell(CELLS[3].axes, CELLS[3].values)]
    judged = [judge(CLAIMS[0], cells, printed=True)]
    text = render_report(judged, "T", "S.", [])
    assert "A is &lt;above> B. Left out: 1 comparisons with a cell for which" in text
    assert [row["claim_left_out"] for row in claim_rows(judged, "top1_accuracy")] == [1]


@pytest.mark.parametrize(("open_ended", "sign"), [("a", "≥ "), ("b", "≤ "), ("", "")])
def test_limits_are_shown_with_their_sign_and_a_note(open_ended, sign):
    cells = [
        Cell(
            {"method": method},
            {0: value, 1: value + 1},
            open_ended=frozenset({0} if method == open_ended else ()),
        )
        for method, value in (("a", 6.0), ("b", 3.0))
    ]
    claim = CLAIMS[0].model_copy(
        update={"greater": None, "than": None, "ratio": {"method": "a"}, "to": {"method": "b"}}
    )
    judged = [judge(claim, cells)]
    text = render_report(judged, "T", "S.", [])
    line = table(text.split("## Comparisons")[1], "Claim")[0]
    assert line[3].startswith(f"{sign}1.88 [")
    assert ("ended below their goal" in text) == bool(sign)
    counts = [(row["seeds_at_most"], row["seeds_at_least"]) for row in claim_rows(judged, "x")]
    assert counts == [(int(sign == "≤ "), int(sign == "≥ "))]


def test_a_claim_about_a_mean_says_of_how_many():
    claim = CLAIMS[0].model_copy(update={"quantifier": "mean"})
    text = render_report([judge(claim, CELLS, claimed=5)], "T", "S.", [])
    assert table(text, "Claim ")[0][4] == "mean of 2, 3 not made"


def test_comparisons_have_their_interval_and_verdict():
    text = report().split("## Comparisons")[1]
    recipes = table(text, "Claim")
    assert recipes[0] == [
        "above", "a − b at alpha = 1 > 0", "+0.50", "+10.17 [+8.27, +12.06]", "3", "holds",
        "–", "0.251",
    ]  # fmt: skip
    assert recipes[1][2:6] == ["−0.50", "+0.17 [−3.83, +4.16]", "3", "undecided"]
    assert recipes[2][1:4] == ["a / b at alpha = 1 ≤ 1.3", "1.01", "1.17 [1.14, 1.20]"]
    assert recipes[4][:6] == ["single", "c − b < 0", "–", "+0.00", "1", "undecided"]
    assert recipes[5][:6] == ["stated", "c ≥ 50, ≤ 60", "50.00 to 55.00", "51.00", "1", "undecided"]
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
    assert {row["claim_p"] for row in rows[2:4]} == {JUDGED[1].p.smallest}
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


def test_rows_have_the_papers_own_p_values_plain_and_corrected():
    means = {"a": 92.0, "b": 88.0}
    more = [Cell({"method": m, "alpha": 0.5}, {}, mean, 0.4, 3) for m, mean in means.items()]
    weak, strong = claim_rows([judge(CLAIMS[0], [*CELLS[:2], *more])], "top1_accuracy")
    assert strong["published_p_holm"] == pytest.approx(2 * strong["published_p"])
    assert weak["published_p_holm"] == weak["published_p"] > strong["published_p"]
