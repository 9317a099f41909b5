import json
from io import BytesIO
from itertools import starmap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from tests.shared.stages import dataset

from fedstage.data.datasets import load
from fedstage.data.datasets.images import Dataset, Images
from fedstage.errors import FedstageError
from fedstage.execution.cli import main
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


def test_arrays_are_those_of_the_data_set(tmp_path):
    expected = load(Digits(**DIGITS), None)

    paths = run(DIGITS, tmp_path)

    train, _ = load_tensors(paths["train"])
    test, _ = load_tensors(paths["test"])
    held_out, _ = load_tensors(paths["held_out"])
    assert set(train) == set(test) == {"images", "labels"}
    assert set(held_out) == {"images"}
    assert torch.equal(train["images"], expected.train.images)
    assert torch.equal(train["labels"], expected.train.labels)
    assert torch.equal(test["images"], expected.test.images)
    assert torch.equal(test["labels"], expected.test.labels)
    assert torch.equal(held_out["images"], expected.held_out)


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


def test_same_settings_give_the_same_bytes(tmp_path):
    first = run(DIGITS, tmp_path / "first")
    second = run(DIGITS, tmp_path / "second")

    for name in first:
        assert first[name].read_bytes() == second[name].read_bytes()


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


def test_test_samples_of_images_are_prepared_in_one_way(tmp_path):
    run(DIGITS, tmp_path, test_own=tmp_path / "test_own.safetensors")

    own, _ = load_tensors(tmp_path / "test_own.safetensors")
    assert own["images"].shape == (0, 1, 8, 8)
    assert own["labels"].shape == (0,)


FEATURES = torch.tensor([[0.5, -1.0], [2.0, 0.25], [0.0, 1.0]])


def patients(settings, folder):
    """Three patients of two clients, one of whom is tested, in either way."""
    none = Images(FEATURES[:0], torch.zeros(0, dtype=torch.int64))
    train = Images(FEATURES[:2], torch.tensor([0, 1]), torch.tensor([1, 0]))
    tested = [
        Images(FEATURES[2:] * factor, torch.tensor([1]), torch.tensor([1])) for factor in (1, 3)
    ]
    names = ("well", "ill")
    return Dataset(train, tested[0], none.images, none, names, test_own=tested[1])


def test_samples_that_are_no_images_are_written_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr("fedstage.stages.dataset.load", patients)

    paths = run({"name": "heart_disease"}, tmp_path, test_own=tmp_path / "test_own.safetensors")

    train, _ = load_tensors(paths["train"])
    assert torch.equal(train["images"], FEATURES[:2])
    assert train["clients"].tolist() == [1, 0]
    own, _ = load_tensors(tmp_path / "test_own.safetensors")
    assert torch.equal(own["images"], 3 * FEATURES[2:])
    assert own["clients"].tolist() == [1]
    info = load_json(paths["info"])
    assert (info["mean"], info["std"], info["shape"], info["classes"]) == ([], [], [2], 2)


def test_nothing_held_out_is_an_empty_array(tmp_path):
    paths = run({**DIGITS, "held_out": 0}, tmp_path)

    assert load_tensors(paths["held_out"])[0]["images"].shape == (0, 1, 8, 8)
    assert load_json(paths["info"])["held_out"] == 0


def test_clients_stand_beside_the_training_labels_only(tmp_path, data_folder):
    paths = run(MINE, tmp_path, folder=data_folder)

    train, _ = load_tensors(paths["train"])
    assert train["clients"].tolist() == [1, 0]
    assert train["labels"].tolist() == [1, 0]
    assert set(load_tensors(paths["test"])[0]) == {"images", "labels"}


def test_deviation_of_constant_pixels_is_one(tmp_path, data_folder):
    info = load_json(run(MINE, tmp_path, folder=data_folder)["info"])

    assert info["mean"] == [0.2, 0.2, 0.2]
    assert info["std"] == [1.0, 1.0, 1.0]


def test_data_folder_comes_from_the_environment(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(data_folder))

    assert load_json(run(MINE, tmp_path)["info"])["train"] == 2


def test_given_folder_goes_before_the_environment(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("FEDSTAGE_DATA", str(tmp_path / "elsewhere"))

    assert load_json(run(MINE, tmp_path, folder=data_folder)["info"])["train"] == 2


@pytest.mark.parametrize("value", [None, ""])
def test_no_folder_at_all_is_explained(tmp_path, monkeypatch, value):
    monkeypatch.delenv("FEDSTAGE_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("FEDSTAGE_DATA", value)

    with pytest.raises(FedstageError, match=r"set data_folder in config\.yaml or FEDSTAGE_DATA"):
        run(MINE, tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"name": "digits", "test": 0}', "--settings: data.test = 0: must be greater"),
        ('{"name": "digits", "size": 3}', "--settings: data.size = 3: unknown key"),
        ('{"name": "mnist"}', "--settings: data = 'mnist': unknown; use 'digits'"),
        ('{"name": "parquet"}', "--settings: data.folder: missing, a value is required"),
        ('{"name": "held_out"}', "--settings: data = 'held_out': unknown"),
        ('{"name": ', "must be JSON"),
    ],
)
def test_invalid_settings_are_one_line_with_key_and_value(tmp_path, settings, message):
    with pytest.raises(FedstageError) as caught:
        dataset(settings=settings, **outputs(tmp_path))

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_is_written_after_an_error(tmp_path):
    with pytest.raises(FedstageError, match=r"data: test = 5000"):
        run({**DIGITS, "test": 5000}, tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_command_line_makes_the_files_and_reports_errors_in_one_line(tmp_path, capsys):
    paths = outputs(tmp_path)
    options = [*starmap("--{}={}".format, paths.items())]
    options = [option.replace("--held_out", "--held-out") for option in options]

    assert main(["dataset", "--settings", json.dumps(DIGITS), *options]) == 0
    assert all(path.is_file() for path in paths.values())

    assert main(["dataset", "--settings", '{"name": "digits", "test": 1797}', *options]) == 1
    assert (
        "fedstage dataset: --settings: data: test = 1797: at most 1796" in capsys.readouterr().err
    )


def test_the_classes_of_public_data_are_not_compared(data_folder, caplog):
    """No client trains on them, and none is tested on them."""
    pq.write_table(pa.table({"img": [png(0)], "label": [2]}), data_folder / "mine/test.parquet")
    for owner, told in (("server", 0), ("clients", 1), (None, 1)):
        caplog.clear()
        run(MINE, data_folder, folder=data_folder, owner=owner)
        assert len(caplog.messages) == told
    train = {"img": [png(51)], "label": [1], "user": ["a"]}
    pq.write_table(pa.table(train), data_folder / "mine/train.parquet")
    run(MINE, data_folder, folder=data_folder, owner="server")
    with pytest.raises(FedstageError, match="all training samples are of class"):
        run(MINE, data_folder, folder=data_folder, owner="clients")
