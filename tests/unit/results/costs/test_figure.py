import pytest

from fedstage.results.costs.figure import describe_costs, dodged, draw_costs, points_of


def run(method, alpha, seed, score, moved=1e6):
    return {"Method": method, "α": alpha, "seed": seed, "score": score, "bytes": moved}


RUNS = [
    run(method, alpha, seed, score + seed, moved)
    for method, score, moved in (("a", 50.0, 1e6), ("b", 50.5, 2e7), ("silent", 20.0, 0.0))
    for alpha in (0.1, 1.0)
    for seed in range(3)
]


def draw(runs):
    return draw_costs(runs, ["Method"], ["α"], "top1_accuracy")


def names_of(axes):
    return {text.get_text(): text for text in axes.texts}


def test_a_facet_has_every_method_by_its_name():
    figure = draw(RUNS)
    assert [axes.get_title() for axes in figure.axes] == ["α = 0.1", "α = 1"]
    for axes in figure.axes:
        assert names_of(axes).keys() == {"a", "b", "silent"}
        assert axes.get_xlabel() == "Bytes to and from a client"


def test_points_are_means_over_seeds():
    (moved, score) = points_of(RUNS, ["Method"], ["α"], "deviation")["α = 0.1"]["b"]
    assert (moved, score.mean, score.half) == (2e7, 51.5, 1.0)


def test_methods_that_send_nothing_stand_before_the_scale():
    axes = draw(RUNS).axes[0]
    first, *others = [tick.get_text() for tick in axes.get_xticklabels()]
    assert first == "none"
    assert not any(axes.get_xticks() == 0)
    assert axes.get_xticks()[0] < min(axes.get_xticks()[1:]) <= 1e6
    assert others
    assert "none" not in [tick.get_text() for tick in draw(RUNS[:6]).axes[0].get_xticklabels()]


def test_points_and_bars_of_all_facets_lie_within_the_axes():
    narrow = [run("a", 0.1, seed, 18.0 + seed) for seed in range(3)]
    wide = [run("a", 1.0, seed, 12.0 + 14 * seed) for seed in range(3)]
    figure = draw([*narrow, *wide])
    low, high = figure.axes[0].get_ylim()
    assert low < 26.0 - 14.0
    assert high > 26.0 + 14.0
    assert figure.axes[1].get_ylim() == (low, high)


def test_points_of_equal_bytes_are_drawn_at_these_bytes():
    equal = [run(method, 1.0, seed, 50.0 + seed) for method in "abcdefgh" for seed in range(3)]
    (axes,) = draw(equal).axes
    starts = {line.get_xdata()[0] for line in axes.lines if line.get_color() == "0.75"}
    assert starts == {1e6}


def test_what_sends_nothing_stands_side_by_side():
    runs = [*RUNS, *(run("other", alpha, 0, 30.0, 0.0) for alpha in (0.1, 1.0))]
    axes = draw(runs).axes[0]
    leaders = [line for line in axes.lines if len(set(line.get_xdata())) == 2]
    first, second, *_ = sorted(line.get_xdata()[0] for line in leaders)
    assert first < axes.get_xticks()[0] < second < axes.get_xticks()[1]


def test_a_line_leads_from_each_name_to_its_point():
    axes = draw(RUNS).axes[0]
    edge = axes.get_xlim()[1]
    ends = {
        (round(line.get_ydata()[0], 6), line.get_ydata()[1])
        for line in axes.lines
        if len(line.get_xdata()) == 2 and line.get_xdata()[1] == edge
    }
    named = {text.xy[1] for text in axes.texts}
    assert {score for score, _ in ends} == {51.0, 51.5, 21.0}
    assert {place for _, place in ends} == named


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([1.0, 5.0, 9.0], [1.0, 5.0, 9.0]),
        ([5.0, 5.0], [4.5, 5.5]),
        ([5.0, 5.2, 6.0], [4.4, 5.4, 6.4]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([10.0, 10.0, 9.9], [8.0, 9.0, 10.0]),
        ([1.0, 1.0, 2.6], [0.5, 1.5, 2.6]),
    ],
)
def test_names_that_would_overlap_are_moved_apart(wanted, places):
    assert dodged(wanted, 1.0, 0.0, 10.0) == pytest.approx(places)


def test_the_caption_says_what_points_are():
    text = describe_costs(RUNS, ["Method"], ["α"])
    assert "Before the scale: methods that send nothing." in text
    assert "3 seeds" in text
    assert "Before" not in describe_costs(RUNS[:6], ["Method"], ["α"])
