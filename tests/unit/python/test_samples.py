"""Samples from Python, and the data set that reads them."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.utils.data import TensorDataset

import fedstage
from fedstage.data.datasets import load
from fedstage.data.partitions.roles import divide_with_core
from fedstage.errors import FedstageError
from fedstage.python.samples import parts, save
from fedstage.settings.data import DataOption
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.validation import validate

IMAGES = torch.arange(40 * 12, dtype=torch.int64).remainder(256).to(torch.uint8).view(40, 3, 2, 2)
LABELS = torch.arange(40) % 4
FEATURES = np.linspace(0, 1, 40 * 6).reshape(40, 2, 3)  # float64


def read(folder, kind="image_tensors", **settings):
    data = {kind: {"folder": folder.name, **settings}}
    return load(validate(DataOption, {"data": data}, "test").data, folder.parent)


def three(x, y=LABELS):
    return [(x[:10], y[:10]), (x[10:25], y[10:25]), (x[25:], y[25:])]


def test_the_data_set_has_the_samples_of_each_client(tmp_path):
    made = parts(three(FEATURES), (FEATURES[:4], [0, 1, 2, 3]), FEATURES[:7])
    name = save(made, tmp_path)
    data = read(tmp_path / name, "feature_tensors", held_out=7)
    assert torch.equal(data.train.images, torch.tensor(FEATURES).float())
    assert torch.equal(data.train.labels, LABELS)
    assert data.train.clients.tolist() == [0] * 10 + [1] * 15 + [2] * 15
    assert torch.equal(data.held_out, data.train.images[:7])
    assert data.test.labels.tolist() == [0, 1, 2, 3]
    assert data.class_names == ("0", "1", "2", "3")
    assert len(read(tmp_path / name, "feature_tensors").held_out) == 0


def test_a_folder_is_named_by_its_content_and_written_once(tmp_path):
    name = save(parts(three(IMAGES), None, None), tmp_path)
    (file,) = (tmp_path / name).iterdir()
    before = file.stat().st_mtime_ns
    datasets = [TensorDataset(*pair) for pair in three(IMAGES)]
    assert save(parts(datasets, None, None), tmp_path) == name
    assert file.stat().st_mtime_ns == before
    assert save(parts(three(IMAGES.flip(0)), None, None), tmp_path) != name


def test_test_samples_are_drawn_evenly_over_clients(tmp_path):
    name = save(parts(three(IMAGES), None, None), tmp_path)
    data = read(tmp_path / name, test_fraction=0.2, held_out=5)
    assert data.test.clients.bincount().tolist() == [2, 3, 3]
    assert (len(data.held_out), len(data.train.labels)) == (5, 27)


def test_classes_that_do_not_occur_keep_their_numbers(tmp_path):
    made = parts([(IMAGES, LABELS * 2)], (IMAGES, LABELS), None)
    assert read(tmp_path / save(made, tmp_path)).train.labels.max() == 6


def test_a_partition_is_that_of_a_run():
    shares = fedstage.partition(IMAGES, LABELS, clients=3, alpha=0.5, min_samples=3, seed=7)
    settings = validate(
        PartitionSettings,
        {
            "clients": 3,
            "partition": {"dirichlet": {"alpha": 0.5, "min_samples": 3}},
            "validation": 0.0,
            "seed": 7,
        },
        "test",
    )
    owned, _ = divide_with_core(settings, LABELS.numpy(), None)
    for (x, y), own in zip(shares, owned, strict=True):
        assert torch.equal(x, IMAGES[np.sort(own)])
        assert torch.equal(y, LABELS[np.sort(own)])


GOOD = (IMAGES, LABELS)


@pytest.mark.parametrize(
    ("clients", "test", "public", "fault"),
    [
        ([], None, None, "clients: there must be at least one"),
        ([GOOD, (IMAGES, LABELS[1:])], None, None, r"clients\[1\]: y: torch.int64 \[39\]"),
        ([GOOD, (IMAGES, LABELS - 1)], None, None, r"clients\[1\]: y: .*from 0"),
        ([GOOD, (IMAGES, LABELS / 2)], None, None, r"clients\[1\]: y: torch.float32"),
        ([(IMAGES.long(), LABELS)], None, None, r"clients\[0\]: x: torch.int64 .*must be images"),
        ([(IMAGES / 0, LABELS)], None, None, "finite features"),
        ([IMAGES], None, None, r"clients\[0\]: must be \(x, y\)"),
        ([GOOD, (IMAGES[:, :2], LABELS)], None, None, r"clients\[1\]: x: .*as for training"),
        ([GOOD], (IMAGES[:, :2], LABELS), None, "test: x: .*as for training"),
        ([GOOD], None, IMAGES / 255, "public: x: torch.float32 .*as for training"),
    ],
)
def test_samples_that_do_not_fit_are_refused(clients, test, public, fault):
    with pytest.raises(FedstageError, match=fault):
        parts(clients, test, public)


def test_files_that_do_not_fit_are_refused(tmp_path):
    save_file({"x": IMAGES, "y": LABELS}, tmp_path / "train.safetensors")
    for settings, fault in [
        ({}, "test.safetensors"),
        ({"kind": "feature_tensors", "test_fraction": 0.2}, "has no features"),
        ({"test_fraction": 0.2, "held_out": 50}, "held_out = 50"),
    ]:
        with pytest.raises(FedstageError, match=fault):
            read(tmp_path, **settings)
    save_file({"x": IMAGES}, tmp_path / "public.safetensors")
    with pytest.raises(FedstageError, match=r"has 40 samples: set this as data.held_out"):
        read(tmp_path, test_fraction=0.2, held_out=5)
    save_file({"x": IMAGES}, tmp_path / "train.safetensors")
    with pytest.raises(FedstageError, match="needs tensors x and y"):
        read(tmp_path, test_fraction=0.2)
    (tmp_path / "train.safetensors").write_bytes(b"none")
    with pytest.raises(FedstageError, match="not a safetensors file"):
        read(tmp_path, test_fraction=0.2)
