import numpy as np
import pandas as pd
import pytest
from measured import described

from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.errors import FedstageError
from fedstage.results.figures.partition import (
    describe_partition,
    draw_partition,
    find_partitions,
    legend_samples,
    read_histogram,
    ticks_of,
)
from fedstage.results.runs_file import ExperimentRun
from fedstage.storage.tables import save_table


def histogram(clients=4, classes=3, factor=1):
    points = [(client, label) for client in range(clients) for label in range(classes)]
    frame = pd.DataFrame(points, columns=["client", "label"])
    return frame.assign(samples=[factor * (7 * c + 3 * label + 1) for c, label in points])


def run(partition, seed=0, **settings):
    return ExperimentRun.model_validate(described({"seed": seed, **settings}, partition=partition))


def areas(axes):
    """Return the area of each bubble, by its client and label."""
    (bubbles,) = axes.collections
    offsets = map(tuple, np.asarray(bubbles.get_offsets()).astype(int))
    return dict(zip(offsets, bubbles.get_sizes(), strict=True))


def test_areas_are_proportional_to_samples():
    frame = histogram()
    (axes,) = draw_partition({"": frame}).axes
    drawn = areas(axes)
    assert len(drawn) == 12
    one = drawn[0, 0] / frame["samples"].iloc[0]
    for row in frame.itertuples():
        assert drawn[row.client, row.label] == pytest.approx(one * row.samples)


def test_partitions_of_one_figure_share_the_scale_of_their_bubbles():
    figure = draw_partition({"a": histogram(), "b": histogram(factor=3)})
    first, second = map(areas, figure.axes)
    assert second[2, 1] == pytest.approx(3 * first[2, 1])
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]


def test_the_legend_shows_the_areas_of_its_numbers():
    frame = histogram(factor=10)
    figure = draw_partition({"": frame})
    (legend,) = figure.legends
    one = areas(figure.axes[0])[0, 0] / frame["samples"].iloc[0]
    assert legend.get_title().get_text() == "Samples"
    assert len(legend.get_lines()) == 3
    for handle in legend.get_lines():
        samples = int(handle.get_label().replace(",", ""))
        assert handle.get_markersize() ** 2 == pytest.approx(one * samples)


@pytest.mark.parametrize(
    ("most", "samples"),
    [(373, [200, 50, 10]), (500, [500, 100, 20]), (19, [10, 2]), (1, [1]), (1000, [1000, 200, 50])],
)
def test_the_legend_has_round_numbers_up_to_the_largest(most, samples):
    assert legend_samples(most) == samples


def test_labels_say_axes_and_the_caption_the_seed():
    (axes,) = draw_partition({"": histogram()}).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Client", "Class")
    assert "for seed 7" in describe_partition(1, 7)
    assert list(axes.get_xticks()) == [0, 1, 2, 3]
    assert list(axes.get_yticks()) == [0, 1, 2]


@pytest.mark.parametrize(("clients", "classes"), [(4, 3), (20, 10), (100, 10), (20, 100), (1, 2)])
def test_every_bubble_lies_within_the_axes(clients, classes):
    figure = draw_partition({"": histogram(clients, classes)})
    figure.draw_without_rendering()
    (axes,) = figure.axes
    frame = axes.get_window_extent()
    radii = np.sqrt(np.array(list(areas(axes).values()))) / 2 * figure.dpi / 72
    centres = axes.transData.transform(np.array(list(areas(axes))))
    assert (centres - radii[:, None] > [frame.x0, frame.y0]).all()
    assert (centres + radii[:, None] < [frame.x1, frame.y1]).all()


@pytest.mark.parametrize(("clients", "classes"), [(4, 3), (10, 10), (20, 10), (100, 10), (20, 100)])
@pytest.mark.parametrize("partitions", [1, 3, 5])
def test_ticks_do_not_overlap(clients, classes, partitions, check_print):
    shown = {f"Data = cifar10, α = {i}": histogram(clients, classes) for i in range(partitions)}
    check_print(draw_partition(shown))


@pytest.mark.parametrize(
    ("count", "most", "ticks"),
    [(10, 20, list(range(10))), (20, 12, list(range(0, 20, 2))), (100, 6, [0, 20, 40, 60, 80])],
)
def test_ticks_are_clients_that_there_are(count, most, ticks):
    assert list(ticks_of(count, most)) == ticks


def test_at_most_six_partitions_are_drawn_and_the_rest_is_told():
    figure = draw_partition({str(i): histogram() for i in range(8)})
    assert len(figure.axes) == 6
    assert "6 of 8 partitions are shown" in describe_partition(8, 0)


def test_roles_are_counted_together(tmp_path):
    columns = {
        "client": [0, 0, 1],
        "role": ["train", "validation", "train"],
        "label": [2, 2, 0],
        "samples": [90, 10, 5],
    }
    save_table(tmp_path / "h.parquet", columns, HISTOGRAM_SCHEMA)
    frame = read_histogram(tmp_path / "h.parquet")
    assert frame.to_dict("list") == {"client": [0, 1], "label": [2, 0], "samples": [100, 5]}


def test_a_histogram_without_rows_is_refused_by_name(tmp_path):
    columns = {"client": [], "role": [], "label": [], "samples": []}
    save_table(tmp_path / "h.parquet", columns, HISTOGRAM_SCHEMA)
    with pytest.raises(FedstageError, match=r"h\.parquet: has no rows"):
        read_histogram(tmp_path / "h.parquet")


def test_partitions_are_those_of_the_first_seed_labelled_by_what_tells_them_apart():
    runs = [
        run("p/1.0", method=method, alpha=1.0, clients=10)
        if alpha == 1.0
        else run("p/0.1", method=method, alpha=0.1, clients=10)
        for alpha in (1.0, 0.1)
        for method in ("fedavg", "scaffold")
    ]
    other_seed = run("p/seed1", seed=1, method="fedavg", alpha=1.0, clients=10)
    found = find_partitions([*runs, other_seed])
    assert found == {"alpha = 1": "p/1.0", "alpha = 0.1": "p/0.1"}
    assert list(found) == ["alpha = 1", "alpha = 0.1"]


def test_a_single_partition_needs_no_label():
    assert find_partitions([run("p", method="a"), run("p", method="b")]) == {"": "p"}


def test_partitions_that_no_setting_tells_apart_are_named_by_their_folders():
    runs = [run("results/one/h.parquet", method="a"), run("results/one/h.parquet", method="b")]
    runs += [run("results/two/h.parquet", method="a")]
    assert find_partitions(runs) == {"one": "results/one/h.parquet", "two": "results/two/h.parquet"}


def test_settings_that_vary_within_a_partition_do_not_label_it():
    runs = [run("p/1", method=method, alpha=1.0) for method in ("fedavg", "scaffold")]
    runs += [run("p/2", method="fedavg", alpha=0.1)]
    assert list(find_partitions(runs)) == ["alpha = 1", "alpha = 0.1"]


def test_small_bubbles_are_drawn_over_large_ones():
    (axes,) = draw_partition({"": histogram()}).axes
    sizes = axes.collections[0].get_sizes()
    assert (np.diff(sizes) < 0).all()
