"""What is drawn of runs that are made by hand: lines, titles and numbers."""

import torch

from fedstage.results.figures.looks import LINE_WIDTH
from fedstage.results.retention.curves import draw_curves
from fedstage.results.retention.table import RunRetention


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
