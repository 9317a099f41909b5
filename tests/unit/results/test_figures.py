"""Figures: what is drawn at one, five and eleven methods, and reproducible files."""

import pytest
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage.errors import FedstageError
from fedstage.results.curves import draw_differences, draw_rounds
from fedstage.results.points import draw_ensembles, draw_published, draw_sweep
from fedstage.results.statistics import confidence_interval
from fedstage.results.style import ends_of, looks_of, save_figure
from fedstage.settings.experiments import Style
from fedstage.settings.scores import Number


def many(number):
    styles = {"method1": Style(colour="vermilion", marker="plus"), "method2": Style(colour="grey")}
    values = {(f"method{i}", 0.1): [50.0 + i, 52.0 + i, 51.5 + i] for i in range(number)}
    return tidy_of(values, rounds=4, styles=styles)


@pytest.mark.parametrize("number", [1, 5, 11, 23, 85])
def test_every_method_has_a_look_of_its_own_and_an_entry_in_the_legend(number):
    tidy = many(number)
    looks = looks_of(tidy.header)
    assert len({(looks.palette[n], looks.markers[n]) for n in looks.palette}) == number
    (legend,) = draw_rounds(tidy).legends
    assert [text.get_text() for text in legend.get_texts()] == list(looks.palette)


def test_a_method_that_is_evaluated_once_is_a_line_named_in_the_legend(tidy):
    first = (tidy.frame["method"] == "local_only") & (tidy.frame["round"] == 1)
    figure = draw_rounds(tidy._replace(frame=tidy.frame[~first]))
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["FedAvg", "FedSDD", "local_only"]
    assert [axes.get_title() for axes in figure.axes] == ["α = 0.1", "α = 1"]
    levels = [line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_ydata()) == 2]
    assert 41.0 in levels


def test_more_lines_than_can_be_told_apart_are_points_in_rows():
    tidy = many(11)
    last = tidy.frame["round"] == 4
    for once, rows in ((8, False), (9, True)):
        of = tidy.frame["method"].str.removeprefix("method").astype(int) < once
        figure = draw_rounds(tidy._replace(frame=tidy.frame[last | ~of]))
        shown = figure.axes[0].get_xlabel(), len(figure.axes[0].get_yticklabels()) == 11
        assert shown == (("Top-1 accuracy (%)", True) if rows else ("Round", False))


@pytest.mark.parametrize("bands", ["interval", "deviation"])
def test_bands_are_students_interval_or_the_deviation(bands):
    values = ACCURACIES["fedavg", 0.1]
    low, high = ends_of(bands)(values)
    found = confidence_interval(values)
    half = found.high - found.mean if bands == "interval" else 0.7637626158259734
    assert (low, high) == pytest.approx((found.mean - half, found.mean + half))
    assert ends_of("none") is None


def test_the_same_figure_has_the_same_bytes(tidy, tmp_path):
    for suffix in ("png", "svg", "pdf"):
        for name in ("a", "b"):
            save_figure(draw_rounds(tidy), tmp_path / f"{name}.{suffix}")
        one, other = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
        assert one == other
    with pytest.raises(FedstageError, match=r"use \.png"):
        save_figure(draw_rounds(tidy), tmp_path / "a.gif")


def test_published_numbers_have_the_printed_mean_and_deviation(tidy):
    with pytest.raises(FedstageError, match="no cell has a published number"):
        draw_published(tidy)
    number = {"top1_accuracy": Number(value=65.0, std=2.0, seeds=3)}
    cells = [cell.model_copy(update={"published": number}) for cell in tidy.header.cells]
    header = tidy.header.model_copy(update={"cells": cells})
    figure = draw_published(tidy._replace(header=header))
    ends = {
        round(float(x), 6)
        for line in figure.axes[0].lines
        for x in line.get_xdata()
        if len(line.get_xdata()) > 1
    }
    assert {63.0, 67.0} <= ends


def test_differences_are_paired_by_seed(tidy):
    with pytest.raises(FedstageError, match="baseline: missing"):
        draw_differences(tidy)
    header = tidy.header.model_copy(update={"baseline": "fedavg"})
    figure = draw_differences(tidy._replace(header=header))
    for axes, alpha in zip(figure.axes, (0.1, 1.0), strict=True):
        for place, method in enumerate(("local_only", "fedsdd")):
            pairs = zip(ACCURACIES[method, alpha], ACCURACIES["fedavg", alpha], strict=True)
            found = confidence_interval([own - other for own, other in pairs])
            heights = axes.lines[place].get_ydata()
            band = axes.collections[place].get_paths()[0].vertices[:, 1]
            assert list(heights) == pytest.approx([found.mean] * 2)
            assert (band.min(), band.max()) == pytest.approx((found.low, found.high))


def test_a_wide_axis_is_logarithmic(tidy):
    header = tidy.header.model_copy(update={"over": "partition.alpha"})
    (axes,) = draw_sweep(tidy._replace(header=header)).axes
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "1"]


def test_ensembles_are_points_of_each_seed():
    measures = dict.fromkeys(("disagreement", "ensemble_gain"), lambda _, value: value / 10)
    figure = draw_ensembles(tidy_of(ACCURACIES, measures=measures))
    points = [len(part.get_offsets()) for axes in figure.axes for part in axes.collections]
    assert points == [9, 9]
    with pytest.raises(FedstageError, match="disagreement: not measured"):
        draw_ensembles(tidy_of(ACCURACIES))
