"""Fed-Camelyon16 on small features in the layout that FLamby's preprocessing leaves."""

import numpy as np
import pytest
import torch

from fedstage.data.datasets import load
from fedstage.errors import FedstageError
from fedstage.settings.data import Camelyon16

HEAD = "label,tumorp1000,tumorp10000,tumorp40000,hospital,hospital_corrected,slide_name"
#: Label, centre and number of tiles.
SLIDES = {
    "tumor_096": (1, 1, 3),
    "normal_002": (0, 0, 5),
    "test_001": (1, 1, 2),
    "test_003": (0, 0, 4),
    "normal_101": (0, 1, 1),
}
FEATURES = 4


def settings(**changes):
    return Camelyon16(name="camelyon16", **changes)


def tiles(name):
    number = list(SLIDES).index(name)
    return np.random.default_rng(number).normal(size=(SLIDES[name][2], FEATURES)).astype(np.float32)


def write_table(folder, slides=SLIDES, head=HEAD):
    lines = [f"{label},,,,0.0,{centre}.0,{name}.tif" for name, (label, centre, _) in slides.items()]
    (folder / "metadata.csv").write_text("\n".join([head, *lines]) + "\n")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "fed_camelyon16"
    made.mkdir()
    write_table(made)
    for name in SLIDES:
        np.save(made / f"{name}.tif.npy", tiles(name))
    return made


def bag(part, number):
    return part.images[part.starts[number] : part.starts[number + 1]].numpy()


def test_slides_are_bags_of_tiles_in_the_order_of_their_names(folder):
    data = load(settings(), folder.parent)

    for number, name in enumerate(["normal_002", "normal_101", "tumor_096"]):
        np.testing.assert_array_equal(bag(data.train, number), tiles(name))
    assert data.train.starts.tolist() == [0, 5, 6, 9]
    assert data.train.labels.tolist() == [0, 0, 1]
    assert data.train.clients.tolist() == [0, 1, 1]
    for number, name in enumerate(["test_001", "test_003"]):
        np.testing.assert_array_equal(bag(data.test, number), tiles(name))
    assert data.test.labels.tolist() == [1, 0]
    assert data.test.clients.tolist() == [1, 0]
    assert data.train.images.dtype == torch.float32
    assert data.class_names == ("normal", "tumor")
    assert len(data.server_validation.labels) == 0
    assert data.server_validation.starts.tolist() == [0]


def test_of_many_tiles_the_same_are_drawn_each_time(folder):
    data = load(settings(max_tiles=3), folder.parent)

    assert data.train.starts.diff().tolist() == [3, 1, 3]
    chosen, every = bag(data.train, 0), tiles("normal_002").tolist()
    places = [every.index(row) for row in chosen.tolist()]
    assert places == sorted(set(places))
    np.testing.assert_array_equal(chosen, bag(load(settings(max_tiles=3), folder.parent).train, 0))


@pytest.mark.parametrize("name", ["normal_086", "test_049"])
def test_slides_that_were_withdrawn_are_left_out(folder, name):
    np.save(folder / f"{name}.tif.npy", tiles("tumor_096"))

    data = load(settings(), folder.parent)

    assert len(data.train.labels) + len(data.test.labels) == len(SLIDES)


def remove(*names):
    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def put(array):
    return lambda folder: np.save(folder / "tumor_096.tif.npy", array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("metadata.csv"), r"metadata\.csv: No such file .*take it from FLamby"),
        (
            remove("test_001.tif.npy", "test_003.tif.npy"),
            r"must have slides normal_\* or tumor",
        ),
        (
            lambda folder: write_table(folder, head=HEAD.replace("hospital_corrected", "centre")),
            "has no column 'hospital_corrected'",
        ),
        (
            lambda folder: write_table(folder, {"tumor_096": (1, 1, 3)}),
            r"metadata\.csv: slide_name: has no normal_002\.tif",
        ),
        (
            lambda folder: write_table(folder, SLIDES | {"a": (2, 0, 1)}),
            "line 7: label = .*: must be one of 0, ",
        ),
        (
            lambda folder: write_table(folder, SLIDES | {"a": ("x", 0, 1)}),
            "line 7: label = .*: must be one of 0, ",
        ),
        (
            lambda folder: (folder / "tumor_096.tif.npy").write_bytes(b"tiles"),
            r"tumor_096\.tif\.npy: is not a NumPy array",
        ),
        (put(np.zeros((2, 5), np.float32)), r"must have slides .* of as many features"),
        (put(np.zeros((0, 4), np.float32)), r"float32 \[0, 4\]: must be .*at least one tile"),
        (put(np.zeros((2, 4), np.int64)), r"int64 \[2, 4\]: must be floating-point"),
        (put(np.array([[None]])), "is not a NumPy array"),
        (put(np.full((2, 4), np.nan, np.float32)), r"tumor_096\.tif\.npy: must be finite"),
        (
            lambda folder: np.save(folder / "Tumor_096.v2.npy", np.ones((2, 4), np.float32)),
            r"is of the same slide as .*; take one away",
        ),
        (
            lambda folder: write_table(folder, SLIDES | {"TUMOR_096": (0, 1, 3)}),
            r"metadata\.csv: slide_name: tumor_096 is there twice",
        ),
    ],
)
def test_faults_of_files_are_named_in_one_line(folder, change, message):
    change(folder)

    with pytest.raises(FedstageError, match=message) as caught:
        load(settings(), folder.parent)
    assert "\n" not in str(caught.value)


def test_slides_of_the_table_without_tiles_are_said(folder, caplog):
    (folder / "normal_101.tif.npy").unlink()
    load(settings(), folder.parent)
    assert "has no tiles of 1 slides in the table: normal_101" in caplog.text
