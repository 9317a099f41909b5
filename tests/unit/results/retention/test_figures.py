"""What is drawn of runs that are made by hand: lines, titles and numbers."""

import pytest
import torch

from fedstage.results.figures.looks import LINE_WIDTH
from fedstage.results.retention.curves import describe_curves, draw_curves
from fedstage.results.retention.runs import RunRetention
from fedstage.results.retention.venn import describe_venn, draw_venn, mean_counts


def run(method, alpha, seed, scores=(5.0, 10.0), lost=4):
    """Rounds of which the first has no previous one, as the third, in which nobody took part."""
    counts = {"lost": lost, "gained": 3, "retained": 8}
    nothing = dict.fromkeys(("current", "previous", "forget_score", *counts))
    rows = [{"round": 1, **nothing, "current": 60.0}]
    rows.append(
        {"round": 2, "current": 99.5, "previous": 94.5, "forget_score": scores[0], **counts}
    )
    rows.append({"round": 3, **nothing})
    rows.append(
        {"round": 4, "current": 90.0, "previous": 80.0, "forget_score": scores[1], **counts}
    )
    more = {"distance": 1.0, "top1_accuracy": 50.0}
    settings = {"Method": method, "α": alpha, "seed": seed}
    return RunRetention(settings, [row | more for row in rows], torch.zeros(2, dtype=torch.bool))


RUNS = [
    run(method, alpha, seed, lost=lost)
    for method, lost in (("KD", 40), ("BKD", 2))
    for alpha in (0.1, 1.0)
    for seed in (0, 1)
]


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def curves(axes):
    return [
        line
        for line in axes.lines
        if line.get_linewidth() == LINE_WIDTH and len(line.get_xdata()) > 1
    ]


def test_each_point_of_the_grid_has_three_axes_and_each_method_a_line():
    figure = draw_curves(RUNS, ["Method"], ["α"])
    assert titles(figure) == [
        f"{measure}\nα = {alpha}"
        for alpha in ("0.1", "1")
        for measure in ("Current participants", "Previous participants", "Forget score")
    ]
    current, previous, score = figure.axes[:3]
    assert [list(line.get_xdata()) for line in curves(current)] == [[1, 2, 4]] * 2
    assert [list(line.get_ydata()) for line in curves(previous)] == [[94.5, 80.0]] * 2
    drawn = [list(line.get_ydata()) for line in curves(score)]
    assert drawn.count([5.0, 10.0]) == 2
    assert current.get_ylim() == previous.get_ylim()
    assert current.get_ylim()[1] <= 102
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["KD", "BKD"]


def test_a_run_that_measures_nothing_twice_is_drawn():
    (first, *_) = (one := run("KD", 0.1, 0)).rounds
    single = RunRetention(one.settings, [first], one.learnt)
    assert len(draw_curves([single], ["Method"], []).axes) == 3
    assert len(draw_venn([single], ["Method"], []).axes) == 1


def test_methods_to_be_compared_are_side_by_side():
    figure = draw_venn(RUNS, ["Method"], ["α"])
    assert titles(figure) == ["KD\nα = 0.1", "BKD\nα = 0.1", "KD\nα = 1", "BKD\nα = 1"]
    tops = [round(axes.get_subplotspec().rowspan.start) for axes in figure.axes]
    assert tops == [0, 0, 1, 1]


def test_circles_have_the_means_of_the_counts_written_in_or_beside_them():
    first, second = draw_venn(RUNS, ["Method"], ["α"]).axes[:2]
    assert {text.get_text() for text in first.texts} == {
        "lost\n40.0", "gained\n3.0", "retained\n8.0",
    }  # fmt: skip
    areas = [patch.radius**2 for patch in first.patches]
    assert areas[0] / areas[1] == pytest.approx(48 / 11)
    assert first.patches[1].radius == pytest.approx(second.patches[1].radius)
    assert first.get_xlim() == second.get_xlim()
    (lost,) = (text for text in first.texts if text.get_text().startswith("lost"))
    assert lost.get_horizontalalignment() == "center"
    (lost,) = (text for text in second.texts if text.get_text().startswith("lost"))
    assert lost.get_horizontalalignment() == "right"


def test_counts_are_means_over_rounds_and_seeds():
    runs = [run("KD", 0.1, 0, lost=4), run("KD", 0.1, 1, lost=7)]
    assert mean_counts(runs) == {"lost": 5.5, "gained": 3.0, "retained": 8.0}


def test_both_figures_fit_a_page_and_two_seeds_have_no_band(check_print):
    figure = draw_curves(RUNS, ["Method"], ["α"])
    check_print(figure)
    assert not any(axes.collections for axes in figure.axes)
    check_print(draw_venn(RUNS, ["Method"], ["α"]))
    three = [run("KD", 0.1, seed) for seed in range(3)]
    assert draw_curves(three, ["Method"], ["α"]).axes[0].collections


def test_captions_say_what_is_drawn():
    assert "single seeds" in describe_curves(RUNS)
    assert "rounds and 2 seeds" in describe_venn(RUNS)
