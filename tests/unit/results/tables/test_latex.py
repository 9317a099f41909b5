import math
import re
from statistics import fmean

import pytest
from scipy.stats import ttest_rel

from fedstage.results.tables.latex import inline, render_latex
from fedstage.results.tables.layout import Layout, Mean, TextColumn
from fedstage.results.tables.presented import marked

NAN = math.nan
NASTY = r"a_b & 50% {x} #1 $y$ ~ ^ \par [z] <q> | \"w\""


def layout(keys, columns, rows=("method",), legend=("All.",)):
    return Layout(list(rows), list(keys), list(columns), list(legend))


def drawn(given, title="Title", source="Source.", label="e-mini"):
    return render_latex(marked(given), title, source, label)


def body(text):
    """The lines between the rules, without the line ends."""
    inside = text.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    return [line.strip().removesuffix(r" \\") for line in inside.strip().splitlines()]


def column(means, head="c", group="", texts=None):
    numbers = [mean if isinstance(mean, Mean) else Mean(mean) for mean in means]
    return TextColumn(head, texts or [f"{mean.value:.1f}" for mean in numbers], group, numbers)


def one_axis(means):
    keys = [(f"m{i}",) for i in range(len(means))]
    return body(drawn(layout(keys, [column(means)])))


# --- the best -------------------------------------------------------------------------------------


def test_the_best_is_bold_and_cells_that_are_equal_share_their_mark():
    assert one_axis([60.0, 62.0, 61.0]) == ["m0 & 60.0", r"m1 & \textbf{62.0}", r"m2 & 61.0"]
    found = one_axis([62.0, 61.0, 62.0, 61.0, 60.0])
    assert [r"\textbf" in line for line in found] == [True, False, True, False, False]
    assert one_axis([NAN, 60.0, 61.0])[0] == "m0 & nan"


def seeds(*scores):
    return Mean(fmean(scores), dict(enumerate(scores)))


#: Seeds differ by far more than methods; `WORSE` is worse with each, p = 0.0011 unpaired 0.9.
BEST, WORSE, AS_GOOD = (60.0, 70.0, 80.0), (59.0, 69.1, 79.0), (61.0, 69.0, 79.9)


def test_methods_are_paired_over_seeds_as_fedstage_compare_does():
    means = [seeds(*BEST), seeds(*WORSE), seeds(*AS_GOOD), Mean(69.9), seeds(69.9)]
    assert [line.split(" & ")[1] for line in one_axis(means)] == [
        r"\textbf{70.0}", "69.0", "70.0$^{*}$", "69.9", "69.9"
    ]  # fmt: skip


def test_stars_are_corrected_for_all_comparisons_of_a_column():
    """One method with p = 0.03 has no star by itself, but two have one, also in two blocks."""
    less = seeds(59.0, 68.8, 79.4)
    assert 0.025 < ttest_rel(BEST, list(less.by_seed.values())).pvalue < 0.05
    assert "*" not in "".join(one_axis([seeds(*BEST), less]))
    assert "".join(one_axis([seeds(*BEST), less, less])).count("$^{*}$") == 2
    keys = [(model, method) for model in "ab" for method in "mn"]
    blocks = [column([seeds(*BEST), less] * 2), column([seeds(*BEST), less, Mean(), less])]
    text = drawn(layout(keys, blocks, rows=("model", "method")))
    assert [line.count("$^{*}$") for line in body(text)] == [0, 1, 0, 0, 1]


def test_columns_are_ranked_for_themselves_and_some_not_at_all():
    columns = [
        column([1.0, 2.0], "measured", "g"),
        column([4.0, 3.0], "published", "g"),
        TextColumn("difference", ["+9.0", "+8.0"], "g"),
    ]
    assert body(drawn(layout([("a",), ("b",)], columns))) == [
        r"a & 1.0 & \textbf{4.0} & +9.0",
        r"b & \textbf{2.0} & 3.0 & +8.0",
    ]


# --- well-formed ----------------------------------------------------------------------------------


def full():
    columns = [
        TextColumn(NASTY, [NASTY, "60.00 ± 1.00 (n = 3)"], group, [Mean(1.0), Mean(2.0)])
        for group in (NASTY, "h")
    ]
    legend = [f"**{NASTY}**: `{NASTY}` – {NASTY} (n−1)"]
    given = layout([(NASTY, "a"), (NASTY, "b")], columns, (NASTY, "method"), legend)
    return drawn(given, NASTY, f"Of `{NASTY}`.", label="e_1-mini")


def without_commands(text):
    """The text without what we write ourselves: escaped characters, commands and comments."""
    text = re.sub(r"^% .*$", "", text, flags=re.MULTILINE)
    text = text.replace(r"\\", "")
    return re.sub(r"\\([{}&%$#_]|[a-zA-Z]+)", "", text)


def test_braces_and_environments_are_balanced():
    text = full()
    bare = re.sub(r"\\[{}]", "", text)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert begun == ["table", "tabular", "minipage"]
    assert ended == ["tabular", "minipage", "table"]


def test_nothing_of_a_text_means_anything_to_latex():
    text = without_commands(full())
    assert not set('%#^~\\<>|"') & set(text)
    text = re.sub(r"\{tab:[\w-]+\}", "", text)
    assert "_" not in text
    outside_maths = re.sub(r"\$\\?-?\$|\$\$", "", text)
    assert "$" not in outside_maths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold_x**: y", r"\textbf{bold\_x}: y"),
        ("at `mini_1` & so", r"at \texttt{mini\_1} \& so"),
        ("a * b ** c", "a * b ** c"),
        ("one `", "one `"),
    ],
)
def test_marks_of_markdown(text, expected):
    assert inline(text) == expected
