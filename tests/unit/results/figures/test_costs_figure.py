from fedstage.results.figures.costs import draw_costs


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


def test_methods_that_send_nothing_stand_before_the_scale():
    axes = draw(RUNS).axes[0]
    first, *others = [tick.get_text() for tick in axes.get_xticklabels()]
    assert first == "none"
    assert not any(axes.get_xticks() == 0)
    assert axes.get_xticks()[0] < min(axes.get_xticks()[1:]) <= 1e6
    assert others
    assert "none" not in [tick.get_text() for tick in draw(RUNS[:6]).axes[0].get_xticklabels()]
