from itertools import pairwise

from matplotlib.collections import PolyCollection

from fedstage.plan.jobs import Job
from fedstage.results.simulation.events import SERVER, Span
from fedstage.results.simulation.figure import Panel, draw_gantt, group_colours, luminance


def span(place, start, end, worker=0):
    return Span(place, worker, start, end)


def panel(label="a", away=None):
    spans = {
        Job(1, 0, "local_training", "participant_0"): span(0, 0.0, 4.0),
        Job(1, 1, "local_training", "participant_1"): span(2, 0.0, 5.0),
        Job(1, 0, "logits", "x"): span(SERVER, 5.0, 6.0),
        Job(1, 0, "distillation", "y"): span(SERVER, 6.0, 10.0, worker=1),
    }
    return Panel(label, spans, away or {})


def draw(*panels):
    return draw_gantt(panels, 10.0, clients=3, servers=2)


def bars(axes):
    """The extent of each bar: x0, x1 and the lane at its middle."""
    found = []
    for bar in axes.collections:
        if isinstance(bar, PolyCollection):
            for path in bar.get_paths():
                box = path.get_extents()
                found.append((box.x0, box.x1, (box.y0 + box.y1) / 2))
    return found


def test_a_bar_a_job_in_the_lane_of_its_worker_or_client_with_its_round():
    axes = draw(panel()).axes[0]
    assert sorted(bars(axes)) == [(0, 4, 2), (0, 5, 4), (5, 6, 0), (6, 10, 1)]
    assert axes.get_ylim() == (4.5, -0.5)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["server", "client 0", "client 1", "client 2"]
    assert list(axes.get_yticks()) == [0.5, 2, 3, 4]
    assert [text.get_text() for text in axes.texts] == ["1"] * 4
    # Numbers stand where there is room only.
    spans = {Job(12, 0, "local_training", "participant_0"): span(0, 0.0, 0.1)}
    assert not draw(Panel("a", spans, {})).axes[0].texts


def test_groups_and_stages_have_colours_of_their_own():
    figure = draw(panel())
    faces = {
        tuple(bar.get_facecolor()[0]) for bar in figure.axes[0].collections if len(bar.get_paths())
    }
    assert len(faces) == 4
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["training, group 0", "training, group 1", "logits", "distillation"]


def test_clients_that_are_away_are_shown_and_explained():
    figure = draw(panel(away={1: [(1.0, 3.0), (8.0, 10.0)]}))
    assert {(1, 3, 3), (8, 10, 3)} <= set(bars(figure.axes[0]))
    assert figure.legends[0].get_texts()[-1].get_text() == "client is away"


def test_the_legend_has_what_is_drawn_only():
    spans = {
        Job(1, 0, "local_training", "participant_0"): span(0, 0.0, 4.0),
        Job(1, 0, "distillation", "y"): span(SERVER, 4.0, 6.0),
    }
    figure = draw(Panel("a", spans, {0: [], 1: []}))
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["training", "distillation"]


def test_panels_stand_below_one_another_on_one_scale():
    figure = draw(panel("a"), panel("b"))
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    assert {axes.get_xlim() for axes in figure.axes} == {(0, 10)}
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "Seconds"]


def test_it_fits_a_page(check_print):
    check_print(draw(panel("FedDF: 9.0 s a round"), panel("FedSDD: 7.1 s a round")))
    check_print(draw(panel()))
    check_print(draw_gantt([panel()] * 2, 10.0, clients=80, servers=2))


def test_groups_are_told_apart_in_greyscale():
    for groups in (1, 4, 8):
        bright = sorted(map(luminance, group_colours(groups)))
        assert all(after - before > 0.04 for before, after in pairwise(bright))
