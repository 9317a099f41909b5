"""The table and the figure of what clients communicate, of runs made by hand."""

from dataclasses import replace

import pytest
from measured import rows_of
from traffic import iterative, one_shot, silent

from fedstage.results.communication.figure import describe_communication, draw_communication
from fedstage.results.communication.phases import Moved, Phase
from fedstage.results.communication.shown import shown_traffic
from fedstage.results.communication.table import COLUMNS, table_rows
from fedstage.results.figures.looks import LINE_WIDTH, MARKERS
from fedstage.results.tables.columns import schema_of

AXES = ["method", "alpha"]


# --- the table ------------------------------------------------------------------------------------


def shown_rows(*runs, metric="top1_accuracy", **more):
    return rows_of(shown_traffic(runs, AXES, metric, **more))


def legend(metric, **more):
    runs = [replace(iterative([1.0, 2.0]), target=1.5), one_shot(1.0, memory_mib=377.03)]
    table = shown_traffic(runs, AXES, metric, **more)
    return dict(note.removeprefix("**").split("**: ", 1) for note in table.notes)


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


def test_up_to_the_best_round_costs_less_than_up_to_the_last():
    rows = by_phase(iterative([10.0, 50.0, 40.0], best=2))
    assert (rows["total"]["times_one_shot"], rows["total"]["score"]) == (3.0, 40.0)
    best = rows["total_to_best"]
    assert (best["rounds"], best["times_one_shot"], best["score"]) == (2, 2.0, 50.0)
    assert "total_to_best" not in by_phase(iterative([10.0, 50.0]))


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


def test_what_has_no_rounds_reaches_an_accuracy_in_none():
    (row,) = shown_rows(replace(one_shot(61.0), target=50.0), reach=50.0)
    assert row["To the accuracy"] == "6.0 kB"


def test_people_see_parameters_where_an_accuracy_is_fixed():
    runs = [replace(iterative([10.0, 50.0, 40.0], seed=seed), target=45.0) for seed in (0, 1)]
    (row,) = shown_rows(*runs, reach=45.0)
    assert row["Parameters"] == "15.0 × 10³"
    assert "Parameters" not in shown_rows(*runs, reach={"method": "fens"})[0]
    exact = by_phase(runs[0])
    assert (exact["total"]["params"], exact["total"]["target"]) == (15_000, None)
    assert (exact["total_to_reach"]["params"], exact["total_to_reach"]["target"]) == (10_000, 45)
    assert exact["federated_round"]["params"] == 15_000


def test_the_legend_has_the_accuracy_that_is_fixed():
    text = legend("auc", reach=70.0)["To the accuracy"]
    assert text.startswith("the bytes both ways until the end of the first evaluated round")
    assert text.endswith("evaluated round whose AUC is at least 70 %.")
    fixed = {"Data": {"cifar10": 70.0, "cifar100": 30.5}}
    text = legend("top1_accuracy", reach=fixed)["To the accuracy"]
    assert text.endswith("at least 70 % (Data = cifar10), 30.5 % (Data = cifar100).")


def test_the_legend_names_the_run_to_keep_up_with():
    text = legend("auc", reach={"method": "fens"})["To the same accuracy"]
    assert text.startswith("the bytes both ways until the end of the first evaluated round")
    assert "the run with method = fens, of the same seed" in text


def test_columns_are_typed_also_where_nothing_is_known():
    rows = table_rows([one_shot(61.0), silent(30.0)], AXES)
    schema = schema_of(rows, COLUMNS)
    assert schema.names == list(rows[0])
    names = (*AXES, "seed", "published_memory_mib")
    kinds = [str(schema.field(name).type) for name in names]
    assert kinds == ["string", "double", "int64", "double"]


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


def test_published_memory_has_a_column_where_a_paper_reports_any():
    assert "Published (MiB)" not in shown_rows(one_shot(1.0))[0]
    (shown,) = shown_rows(one_shot(1.0, memory_mib=377.03), metric="auc")
    assert shown["Published (MiB)"] == "377.03"
    assert "FENS, Table 4" in legend("auc", source="FENS, Table 4")["Published (MiB)"]


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


def test_what_sends_nothing_is_a_point_before_the_scale(check_print):
    figure = draw(iterative([10.0, 50.0]), silent(30.0))
    (axes,) = figure.axes
    ((x, y),) = points(axes)
    assert y == 30.0
    assert axes.get_xlim()[0] < x < 2000
    assert axes.get_xticklabels()[0].get_text() == "none"
    assert len(lines(axes)) == 1
    assert "methods that send nothing" in describe_communication([silent(30.0)], ["method"], [])
    check_print(figure)


def test_a_curve_is_the_mean_over_seeds():
    (axes,) = draw(iterative([10.0, 50.0]), iterative([20.0, 54.0], seed=1)).axes
    assert lines(axes)[0].get_ydata().tolist() == [15, 52]


def test_points_of_as_many_bytes_are_drawn_at_these_bytes():
    runs = [one_shot(61.0 + seed, seed=seed, method=m) for m in ("a", "b") for seed in (0, 1, 2)]
    (axes,) = draw(*runs).axes
    assert points(axes) == [[6000, 62], [6000, 62]]
    assert len(axes.collections) == 2  # bars of one deviation


def test_what_sends_nothing_stands_side_by_side():
    runs = [iterative([10.0, 50.0]), silent(30.0), silent(30.0, method="other")]
    (axes,) = draw(*runs).axes
    (first, _), (second, _) = points(axes)
    assert first < axes.get_xticks()[0] < second < 2000


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


@pytest.mark.parametrize(("rounds", "labels"), [(4, 2), (60, 2)])
def test_narrow_ranges_of_bytes_have_labels_too(rounds, labels, check_print):
    figure = draw(iterative([10.0] * rounds))
    check_print(figure)
    check_print(draw(*(iterative([10.0] * rounds, alpha=alpha) for alpha in (0.01, 0.1, 1.0))))
    figure.canvas.draw()
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    assert sum(low <= tick <= high for tick in axes.get_xticks()) >= labels


def test_a_facet_a_value_of_the_columns():
    runs = [iterative([10.0, 50.0], alpha=alpha) for alpha in (0.1, 1.0)]
    assert [axes.get_title() for axes in draw(*runs).axes] == ["alpha = 0.1", "alpha = 1"]
    assert len(draw(runs[0], columns=()).axes) == 1


def test_runs_of_different_lengths_are_not_averaged():
    with pytest.raises(ValueError, match="shorter"):
        draw(iterative([10.0, 50.0]), iterative([20.0, 20.0, 20.0], seed=1))


def test_the_legend_names_each_method_once():
    runs = [one_shot(61.0), iterative([10.0, 50.0]), iterative([10.0, 50.0], alpha=1.0)]
    (shown,) = draw(*runs).legends
    assert [text.get_text() for text in shown.get_texts()] == ["fens", "fedavg"]


def test_an_axis_of_bytes_that_hardly_differ_is_wider_than_they_are():
    near = one_shot(60.0, method="other")
    near.phases.append(Phase(1, "label_counts", 0, Moved(40, 0, 400)))
    figure = draw(one_shot(61.0), near)
    low, high = figure.axes[0].get_xlim()
    assert high > 3 * low
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(labels)) == len(labels)
