"""Images in folders of classes, and of clients."""

import pytest
import torch
from PIL import Image

from fedstage.data.datasets.own_images import load
from fedstage.data.layouts import count_clients
from fedstage.errors import FedstageError
from fedstage.settings.data import ImageFolder


def save(path, level=0, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (level, 0, 255 - level)).convert(mode).save(path)


def settings(**keys):
    return ImageFolder(name="image_folder", folder="mine", **keys)


@pytest.fixture
def pets(tmp_path):
    """Ten images of each of two classes of two clients, in three formats and several sizes."""
    for centre in ("Bern", "Basel"):
        for label, kind in enumerate(("cat", "dog")):
            for n in range(10):
                suffix = (".png", ".JPG", ".bmp")[n % 3]
                save(tmp_path / f"mine/{centre}/{kind}/{n}{suffix}", 200 * label, (8 + n, 20 - n))
    (tmp_path / "mine/notes.txt").write_text("no image")
    save(tmp_path / "mine/.thumbs/cat/0.png")
    (tmp_path / "mine/Bern/cat/._0.png").write_bytes(b"of another system")
    return tmp_path


def test_classes_and_clients_are_the_names_of_folders(pets):
    data = load(settings(client_folders=True, image_size=16), pets)
    assert data.class_names == ("cat", "dog")
    assert data.client_names == ("Basel", "Bern")
    for part, each in ((data.train, 8), (data.test, 2)):
        assert part.images.shape == (4 * each, 3, 16, 16)
        assert part.images.dtype == torch.uint8
        counts = torch.bincount(2 * part.clients + part.labels, minlength=4)
        assert counts.tolist() == [each] * 4
        red = part.images[:, 0].double().mean((1, 2))
        assert torch.equal(red > 100, part.labels == 1)
    assert count_clients(settings(client_folders=True), pets) == 2


def test_folders_for_training_and_testing_are_taken_as_they_are(tmp_path):
    for part, count in (("train", 3), ("test", 2)):
        for label, kind in enumerate(("cat", "dog")):
            for n in range(count):
                save(tmp_path / f"mine/{part}/{kind}/{n}.png", 100 * label + n)
    data = load(settings(), tmp_path)
    assert data.train.images[:, 0, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert data.test.images[:, 0, 0, 0].tolist() == [0, 1, 100, 101]
    assert data.train.clients is data.test.clients is data.client_names is None
    parts = load(settings(held_out=2, server_validation=1, train_size=2, test_size=1), tmp_path)
    sizes = [len(part.labels) for part in (parts.train, parts.server_validation, parts.test)]
    assert [*sizes, len(parts.held_out)] == [2, 1, 1, 2]


def test_a_client_without_images_for_training_is_none(tmp_path):
    for place in ("train/Bern/cat", "train/Bern/dog", "test/Bern/cat", "test/Chur/dog"):
        save(tmp_path / f"mine/{place}/0.png")
    data = load(settings(client_folders=True), tmp_path)
    assert data.client_names == ("Bern",)
    assert data.test.clients.tolist() == [0, -1]
    assert count_clients(settings(client_folders=True), tmp_path) == 1
    assert count_clients(settings(client_folders=True, division=[1, 0, 1]), tmp_path) == 2


def test_many_images_stay_in_order(tmp_path):
    for n in range(250):
        save(tmp_path / f"mine/{'ab'[n % 2]}/{n:03}.png", n, (2, 2))
    data = load(settings(test_fraction=0.1), tmp_path)
    levels = data.train.images[:, 0, 0, 0]
    assert torch.equal(levels % 2, data.train.labels.to(torch.uint8))
    assert levels[data.train.labels == 1].tolist() == sorted(
        levels[data.train.labels == 1].tolist()
    )


def test_an_image_that_cannot_be_read_is_told(pets):
    path = pets / "mine/Bern/dog/1.JPG"
    path.unlink()
    path.symlink_to(pets / "nowhere")  # does not count
    data = load(settings(client_folders=True, image_size=4), pets)
    assert len(data.train.labels) + len(data.test.labels) == 39
    path.unlink()
    path.write_bytes(b"")
    with pytest.raises(FedstageError, match=r"Bern/dog/1\.JPG: cannot decode the image"):
        load(settings(client_folders=True, image_size=4), pets)
