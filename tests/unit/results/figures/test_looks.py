import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from fedstage.experiments.runs_file import ExperimentRun, ExperimentRuns
from fedstage.results.figures.looks import COLOURS, PALETTE, looks_of, looks_of_runs
from fedstage.settings.experiments import Style

#: Machado, Oliveira and Fernandes 2009, for the full deficiency: what such a reader sees.
SEEN = {
    "all": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def lab(colour, seen):
    """Return a colour in CIELAB (D65), as it is seen."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.asarray(seen) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.asarray(to_xyz) @ linear / [0.9505, 1.0, 1.089] + 1e-9)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("reader", SEEN)
def test_colours_are_told_apart_by_all_readers(reader):
    seen = [lab(colour, SEEN[reader]) for colour in COLOURS]
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest > 10  # 2.3 is a difference that is just noticed


def distance(one, other):
    return np.linalg.norm(lab(one, SEEN["all"]) - lab(other, SEEN["all"]))


def test_a_method_looks_the_same_in_every_figure_unless_another_looks_like_it():
    names = [f"method {number}" for number in range(40)]
    alone = {name: looks_of([name])[name] for name in names}
    assert {look.colour for look in alone.values()} == set(COLOURS)
    first, *others = names
    for other in others:
        both = looks_of([first, other])
        assert both[first] == alone[first]
        if distance(alone[other].colour, alone[first].colour) > 50:
            assert both[other].colour == alone[other].colour
        else:
            assert both[other].colour != both[first].colour


def test_given_colours_and_markers_stay_and_others_make_room():
    free = looks_of(["fedavg"])["fedavg"]
    (name,) = [name for name, code in PALETTE.items() if code == free.colour]
    given = {"mine": Style(colour=name, marker="plus")}
    settings = [{"method": method, "seed": 0} for method in ("fedavg", "mine")]
    runs = [ExperimentRun.model_construct(settings=one) for one in settings]
    looks = looks_of_runs(
        ExperimentRuns.model_construct(
            rows=["method"], styles=given, labels={"mine": "Mine"}, runs=runs
        )
    )
    assert list(looks) == ["fedavg", "Mine"]
    assert (looks["Mine"].colour, looks["Mine"].marker) == (free.colour, "P")
    assert looks["fedavg"].colour != free.colour
