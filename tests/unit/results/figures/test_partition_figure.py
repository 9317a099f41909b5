import numpy as np
import pandas as pd
import pytest
from measured import described

from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.experiments.runs_file import ExperimentRun
from fedstage.results.figures.partition import (
    describe_partition,
    draw_partition,
    find_partitions,
    read_histogram,
)
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
