"""The table and the figure of what clients communicate, of runs made by hand."""

from dataclasses import replace

from measured import rows_of
from traffic import iterative, one_shot, silent

from fedstage.results.communication.figure import describe_communication, draw_communication
from fedstage.results.communication.shown import shown_traffic
from fedstage.results.communication.table import table_rows
from fedstage.results.figures.looks import LINE_WIDTH, MARKERS

AXES = ["method", "alpha"]


# --- the table ------------------------------------------------------------------------------------


def shown_rows(*runs, metric="top1_accuracy", **more):
    return rows_of(shown_traffic(runs, AXES, metric, **more))


def by_phase(*runs):
    return {row["phase"]: row for row in table_rows(runs, AXES)}


def test_a_row_a_phase_and_a_sum():
    rows = by_phase(one_shot(61.0))
    assert list(rows) == ["local_model", "ensemble", "round", "total"]
    assert (rows["round"]["rounds"], rows["round"]["bytes"]) == (50, 1000)
    total = rows["total"]
    assert (total["bytes_up"], total["bytes_down"], total["bytes"]) == (1500, 4500, 6000)
    assert (total["times_one_shot"], total["score"], total["rounds"]) == (3.0, 61.0, 0)
    assert (total["memory_bytes"], total["memory_mib"]) == (5048, 5048 / 2**20)
    assert rows["round"]["memory_bytes"] is None


def test_up_to_the_accuracy_of_another_run():
    run = iterative([10.0, 50.0, 40.0])
    reached = by_phase(replace(run, target=45.0))["total_to_reach"]
    assert (reached["rounds"], reached["times_one_shot"], reached["score"]) == (2, 2.0, 50.0)
    never = by_phase(replace(run, target=60.0))["total_to_reach"]
    assert {never[name] for name in ("rounds", "bytes", "times_one_shot", "score")} == {None}
    assert "total_to_reach" not in by_phase(run)


def test_people_see_how_many_seeds_are_as_accurate():
    first, second = iterative([10.0, 50.0]), iterative([10.0, 30.0], seed=1)

    def shown(*targets, **more):
        runs = [replace(run, target=t) for run, t in zip((first, second), targets, strict=True)]
        return shown_rows(*runs, silent(1.0), **more)

    reach = {"reach": {"method": "fens"}}
    both, other = (row["To the same accuracy"] for row in shown(10.0, 30.0, **reach))
    assert (both, other) == ("3.0 kB (round 1–2)", "–")
    (one, _) = shown(40.0, 40.0, reach=40.0)
    assert one["To the accuracy"] == "4.0 kB (round 2), 1 of 2 seeds"
    (none, _) = shown(60.0, 60.0, reach=60.0)
    assert none["To the accuracy"] == "not reached"


def test_people_see_a_line_a_cell_with_means_over_seeds():
    runs = [iterative([10.0, 50.0, 40.0], best=2), iterative([10.0, 30.0, 44.0], seed=1, best=3)]
    row, other = shown_rows(*runs, silent(30.0))
    assert (row["method"], row["alpha"], row["Rounds"]) == ("fedavg", "0.1", "3")
    each = (row[f"{way} per round"] for way in ("Upload", "Download"))
    assert [*each] == ["1.0 kB", "1.0 kB"]
    assert [row[name] for name in ("Upload", "Download", "Both")] == ["3.0 kB", "3.0 kB", "6.0 kB"]
    assert (row["Times one-shot"], row["Top-1 accuracy (%)"]) == ("3", "42.00 ± 2.83")
    assert row["To the best round"] == "5.0 kB (round 2–3): 47.00 ± 4.24"
    assert (other["method"], other["Both"], other["To the best round"]) == ("local", "0 B", "–")
    assert (other["Rounds"], other["Upload per round"]) == ("–", "–")


def test_what_travels_once_stands_apart_from_rounds():
    several = iterative([10.0, 50.0])
    row, other = shown_rows(one_shot(61.0), several)
    found = [row[name] for name in ("Rounds", "Upload per round", "Outside of rounds")]
    assert found == ["50", "10 B", "5.0 kB"]
    assert (row["Both"], other["Outside of rounds"]) == ("6.0 kB", "–")
    assert "Outside of rounds" not in shown_rows(several)[0]


# --- the figure -----------------------------------------------------------------------------------


def draw(*runs, columns=("alpha",)):
    return draw_communication(runs, ["method"], list(columns))


def lines(axes):
    """The curves over rounds."""
    return [
        line
        for line in axes.lines
        if line.get_linewidth() == LINE_WIDTH and len(line.get_xdata()) > 1
    ]


def points(axes):
    """The points of methods that are evaluated once."""
    found = [
        line for line in axes.lines if line.get_marker() in MARKERS and line.get_markersize() > 3
    ]
    drawn = {line.get_color() for line in lines(axes)}
    return [line.get_xydata().tolist()[0] for line in found if line.get_color() not in drawn]


def test_rounds_are_a_curve_and_others_a_point(check_print):
    figure = draw(iterative([10.0, 50.0]), one_shot(61.0))
    (axes,) = figure.axes
    (curve,) = lines(axes)
    assert curve.get_xydata().tolist() == [[2000, 10], [4000, 50]]
    assert points(axes) == [[6000, 61]]
    assert axes.get_xscale() == "log"
    check_print(figure)


def test_many_curves_are_panels_of_a_few_each(check_print):
    names = [f"method {number}" for number in range(25)]
    runs = [iterative([10.0, 50.0 + place], method=m) for place, m in enumerate(names)]
    figure = draw(*runs, one_shot(61.0))
    titles = [axes.get_title() for axes in figure.axes][:2]
    assert titles == ["method 0 to method 4", "method 5 to method 9"]
    for axes in figure.axes:
        assert len(lines(axes)) <= 5
        drawn = [line for line in axes.lines if len(line.get_xdata()) == 2]
        assert sum(line.get_linewidth() in (LINE_WIDTH, 0.8) for line in drawn) == 25
    assert sum(len(points(axes)) for axes in figure.axes) == 1
    check_print(figure)
    text = describe_communication(runs, ["method"], [])
    assert "In grey: the curves and points of the other panels." in text
    assert "grey" not in describe_communication(runs[:5], ["method"], [])
