import json
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from tests.shared.stages import dataset

from fedstage.data.datasets import load
from fedstage.errors import FedstageError
from fedstage.settings.data import Digits
from fedstage.storage.files import load_json
from fedstage.storage.tensors import load_tensors
from fedstage.training.public_images import change_once

DIGITS = {"name": "digits", "test": 300, "held_out": 100, "split_seed": 3}


def outputs(folder):
    names = {"train": "safetensors", "test": "safetensors", "held_out": "safetensors"}
    return {name: folder / f"{name}.{kind}" for name, kind in {**names, "info": "json"}.items()}


def run(settings, place, **options):
    paths = outputs(place)
    dataset(settings=json.dumps(settings), **paths, **options)
    return paths


def png(grey):
    buffer = BytesIO()
    Image.fromarray(np.full((4, 4, 3), grey, np.uint8)).save(buffer, "PNG")
    return {"bytes": buffer.getvalue(), "path": None}


@pytest.fixture
def data_folder(tmp_path):
    """Two grey training images of users b and a, one test image."""
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    train = {"img": list(map(png, [51, 51])), "label": [1, 0], "user": ["b", "a"]}
    pq.write_table(pa.table(train), folder / "train.parquet")
    pq.write_table(pa.table({"img": [png(0)], "label": [1]}), folder / "test.parquet")
    return folder.parent


MINE = {"name": "parquet", "folder": "mine", "client_column": "user"}


def test_info_describes_the_data_set(tmp_path):
    paths = run(DIGITS, tmp_path)

    info = load_json(paths["info"])

    pixels = load_tensors(paths["train"])[0]["images"].double() / 255
    assert info.pop("mean") == pytest.approx([pixels.mean().item()])
    assert info.pop("std") == pytest.approx([pixels.std(correction=0).item()])
    assert info == {
        "name": "digits",
        "classes": 10,
        "class_names": list("0123456789"),
        "shape": [1, 8, 8],
        "train": 1397,
        "test": 300,
        "held_out": 100,
        "server_validation": 0,
    }


def test_held_out_images_are_changed_once_and_no_others(tmp_path):
    plain = run(DIGITS, tmp_path / "plain")
    none = run(DIGITS | {"held_out_augmentation": "none"}, tmp_path / "none")
    shifted = run(DIGITS | {"held_out_augmentation": "crop"}, tmp_path / "shifted")

    assert all(plain[name].read_bytes() == none[name].read_bytes() for name in plain)
    same = {name for name in plain if plain[name].read_bytes() == shifted[name].read_bytes()}
    assert same == {"train", "test", "info"}
    before, after = (load_tensors(one["held_out"])[0]["images"] for one in (plain, shifted))
    assert torch.equal(after, change_once(before, "crop", 3))
    assert not torch.equal(after, before)


def test_the_servers_own_images_are_written_with_their_labels(tmp_path):
    settings = {**DIGITS, "server_validation": 40}
    expected = load(Digits(**settings), None).server_validation

    paths = run(settings, tmp_path, server_validation=tmp_path / "own.safetensors")

    own, _ = load_tensors(tmp_path / "own.safetensors")
    assert set(own) == {"images", "labels"}
    assert torch.equal(own["images"], expected.images)
    assert torch.equal(own["labels"], expected.labels)
    assert load_json(paths["info"])["server_validation"] == 40
    assert load_json(paths["info"])["train"] == 1357


def test_clients_stand_beside_the_training_labels_only(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(data_folder))
    paths = run(MINE, tmp_path)

    train, _ = load_tensors(paths["train"])
    assert train["clients"].tolist() == [1, 0]
    assert train["labels"].tolist() == [1, 0]
    assert set(load_tensors(paths["test"])[0]) == {"images", "labels"}


def test_nothing_is_written_after_an_error(tmp_path):
    with pytest.raises(FedstageError, match=r"data.test = 5000"):
        run({**DIGITS, "test": 5000}, tmp_path / "out")

    assert not (tmp_path / "out").exists()
