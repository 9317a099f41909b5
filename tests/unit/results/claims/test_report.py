import pytest

from fedstage.outcomes.comparisons import Cell
from fedstage.results.claims.report import SCHEMA, claim_rows, own_tests, render_report
from fedstage.results.claims.verdicts import judge
from fedstage.results.tables import html
from fedstage.settings.scores import Claim

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
JUDGED = [judge(claim, CELLS, claimed=3) for claim in CLAIMS]


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
    undecided, held = "undecided after 1 seed", "1 of 3, holds in 0"
    assert table(report(), "Claim ") == [
        [
            *(
                "above",
                "Table 2",
                "no (1 of 2)",
                "1 of 1 as claimed, 0 with p ≤ 0.05, 0 after Holm",
            ),
            *("undecided after 3 seeds", "2 of 3, holds in 1", "0.874"),
        ],
        # p of the weaker ratio.
        ["ratio", "Table 2", "yes (2 of 2)", "–", "holds", "2 of 3", "0.004"],
        ["single", "Table 2", "–", "–", undecided, held, "1.000"],
        ["stated", "Table 2", "yes (1 of 1)", "–", undecided, held, "1.000"],
        ["elsewhere", "Table 2", "–", "–", "not measured", "0 of 3", "–"],
    ]


def test_a_claim_about_an_average_has_its_mean_and_then_its_comparisons():
    claim = CLAIMS[0].model_copy(update={"primary": True, "margin": 2.0, "quantifier": "mean"})
    judged = [judge(claim, CELLS, claimed=5)]
    text = render_report(judged, "T", "S.", [])
    first = table(text, "Claim ")[0]
    assert (first[0], first[5], first[6]) == ("above (primary)", "2 of 5", "0.016")
    lines = table(text.split("## Comparisons")[1], "Claim")
    assert [line[1] for line in lines] == [
        *("mean of 2 > 0", "a − b at alpha = 1 > 0", "a − b at alpha = 0.1 > 0")
    ]
    assert [line[7] for line in lines] == ["holds", "holds", "undecided"]
    rows = claim_rows(judged, "top1_accuracy")
    assert {(row["primary"], row["margin"]) for row in rows} == {(True, 2.0)}
    assert [row["published_p"] is None for row in rows] == [True, False, True]


def test_the_papers_own_tests_are_corrected_and_equal_numbers_are_one():
    def printed(*means):
        return [
            Cell({"method": method, "alpha": alpha}, {}, mean, 0.4, 3)
            for alpha, pair in enumerate(means)
            for method, mean in zip("ab", pair, strict=True)
        ]

    def found(*means):
        return own_tests(judge(CLAIMS[0], printed(*means)))

    weak, strong = (89.0, 88.0), (92.0, 88.0)
    assert found(weak) == "1 of 1 as claimed, 1 with p ≤ 0.05, 1 after Holm"
    assert found(weak, (88.0, 89.0)) == "1 of 2 as claimed, 1 with p ≤ 0.05, 0 after Holm"
    every = found(weak, strong, (88.5, 88.0))
    assert every == "3 of 3 as claimed, 2 with p ≤ 0.05, 1 after Holm"
    assert found(weak, strong, (88.5, 88.0), weak) == every


def test_comparisons_have_their_interval_and_verdict():
    lines = table(report().split("## Comparisons")[1], "Claim")
    assert lines[0] == [
        "above", "a − b at alpha = 1 > 0", "+0.50", "0.251", "+10.17 [+8.27, +12.06]", "3",
        "0.002", "holds",
    ]  # fmt: skip
    assert lines[1][2:] == ["−0.50", "–", "+0.17 [−3.83, +4.16]", "3", "0.874", "undecided"]
    assert lines[2][1:5] == ["a / b at alpha = 1 ≤ 1.3", "1.01", "–", "1.17 [1.14, 1.20]"]
    assert lines[4][1:] == ["c − b < 0", "–", "–", "+0.00", "1", "1.000", "undecided"]
    assert lines[5][1:6] == ["c ≥ 50, ≤ 60", "50.00 to 55.00", "–", "51.00", "1"]
    assert len(lines) == 6


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
    assert [row["claim_verdict"] for row in rows[2:4]] == ["holds"] * 2
    assert {row["claim_p"] for row in rows[2:4]} == {JUDGED[1].p["holds"]}
    assert {(row["claim_measured"], row["claim_comparisons"]) for row in rows[:4]} == {(2, 3)}
    assert third["p"] < rows[3]["p"] == rows[3]["claim_p"]
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
