"""The official file formats at a small size; checksums of the small files replace the real ones."""

import hashlib
import pickle
import tarfile
import threading
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from torchvision import datasets

from fedstage.data.datasets.published import load as load_torchvision
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import TorchvisionData

CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse"]
CIFAR10_NAMES += ["ship", "truck"]
CIFAR100_NAMES = [f"fine_{index:02}" for index in range(100)]


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


class Python2Pickler(pickle._Pickler):
    """Pickles bytes as Python 2 did its `str`, which is what the official CIFAR files hold."""

    def save_bytes(self, value):
        self.write(pickle.BINSTRING + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    dispatch = {**pickle._Pickler.dispatch, bytes: save_bytes}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def copyfile(self, source, outputfile):
        with suppress(ConnectionError):  # torchvision looks for redirects and hangs up
            super().copyfile(source, outputfile)


def write_pickle(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        Python2Pickler(file, protocol=2).dump(content)
    return [path.name, md5(path)]


def pixels(seed, n):
    """Random images [n, 3, 32, 32]."""
    return np.random.default_rng(seed).integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)


def flat(images):
    """CIFAR's rows: 1,024 red, then 1,024 green, then 1,024 blue values, row by row."""
    return images.reshape(len(images), 3072)


@pytest.fixture
def cifar10(tmp_path, monkeypatch):
    """Write 5 batches of 4 images and 6 test images; return the pixels."""
    folder = tmp_path / "cifar-10-batches-py"
    train, test = pixels(1, 20), pixels(2, 6)
    batches = []
    for index in range(5):
        rows = slice(4 * index, 4 * index + 4)
        batch = {b"data": flat(train[rows]), b"labels": [index, 9 - index, index, 0]}
        batches.append(write_pickle(folder / f"data_batch_{index + 1}", batch))
    last = write_pickle(folder / "test_batch", {b"data": flat(test), b"labels": [5, 4, 3, 2, 1, 0]})
    _, checksum = write_pickle(
        folder / "batches.meta", {b"label_names": [name.encode() for name in CIFAR10_NAMES]}
    )
    monkeypatch.setattr(datasets.CIFAR10, "train_list", batches)
    monkeypatch.setattr(datasets.CIFAR10, "test_list", [last])
    monkeypatch.setattr(datasets.CIFAR10, "meta", {**datasets.CIFAR10.meta, "md5": checksum})
    return train, test


@pytest.fixture
def cifar100(tmp_path, monkeypatch):
    folder = tmp_path / "cifar-100-python"
    train, test = pixels(3, 5), pixels(4, 2)
    first = write_pickle(
        folder / "train",
        {b"data": flat(train), b"fine_labels": [99, 0, 7, 8, 9], b"coarse_labels": [1, 1, 1, 1, 1]},
    )
    last = write_pickle(
        folder / "test", {b"data": flat(test), b"fine_labels": [50, 51], b"coarse_labels": [2, 2]}
    )
    names = [name.encode() for name in CIFAR100_NAMES]
    _, checksum = write_pickle(
        folder / "meta", {b"fine_label_names": names, b"coarse_label_names": [b"a", b"b"]}
    )
    monkeypatch.setattr(datasets.CIFAR100, "train_list", [first])
    monkeypatch.setattr(datasets.CIFAR100, "test_list", [last])
    monkeypatch.setattr(datasets.CIFAR100, "meta", {**datasets.CIFAR100.meta, "md5": checksum})
    return train, test


@pytest.fixture
def svhn(tmp_path, monkeypatch):
    """SVHN's arrays: X [32, 32, 3, n], y [n, 1] with 10 for the digit 0."""
    from scipy.io import savemat

    train, test = pixels(5, 6), pixels(6, 3)
    files = {"train": (train, [1, 2, 10, 4, 9, 10]), "test": (test, [10, 8, 3])}
    files["extra"] = (pixels(7, 4), [6, 10, 5, 7])
    split_list = {}
    for split, (images, labels) in files.items():
        path = tmp_path / f"{split}_32x32.mat"
        savemat(path, {"X": images.transpose(2, 3, 1, 0), "y": np.array([labels], np.uint8).T})
        split_list[split] = ["http://127.0.0.1:9/none", path.name, md5(path)]
    monkeypatch.setattr(datasets.SVHN, "split_list", split_list)
    return train, test


@pytest.fixture
def server(tmp_path_factory, monkeypatch):
    """Serve a folder over HTTP; return the folder and its address."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path_factory.mktemp("served")
    handler = partial(QuietHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cifar10_archive(cifar10, tmp_path, server, monkeypatch):
    """Move the small CIFAR-10 into an archive on a server; return the archive."""
    served, address = server
    archive = served / "cifar-10-python.tar.gz"
    folder = tmp_path / "cifar-10-batches-py"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    monkeypatch.setattr(datasets.CIFAR10, "url", f"{address}/{archive.name}")
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5(archive))
    return archive


def settings(name, **keys):
    return TorchvisionData(name=name, **keys)


def test_cifar10_keeps_pixels_labels_and_names(cifar10, tmp_path):
    train, test = cifar10

    data = load_torchvision(settings("cifar10"), tmp_path)

    assert np.array_equal(data.train.images, train)
    assert np.array_equal(data.test.images, test)
    assert data.train.images.dtype == torch.uint8
    assert data.train.labels.dtype == torch.int64
    expected = [0, 9, 0, 0, 1, 8, 1, 0, 2, 7, 2, 0, 3, 6, 3, 0, 4, 5, 4, 0]
    assert data.train.labels.tolist() == expected
    assert data.test.labels.tolist() == [5, 4, 3, 2, 1, 0]
    assert data.class_names == tuple(CIFAR10_NAMES)
    assert data.train.clients is None
    assert data.held_out.shape == (0, 3, 32, 32)


def test_cifar100_takes_fine_labels(cifar100, tmp_path):
    data = load_torchvision(settings("cifar100"), tmp_path)

    assert np.array_equal(data.train.images, cifar100[0])
    assert data.train.labels.tolist() == [99, 0, 7, 8, 9]
    assert data.test.labels.tolist() == [50, 51]
    assert data.class_names == tuple(CIFAR100_NAMES)


def test_svhn_keeps_pixels_and_counts_digit_zero_as_class_zero(svhn, tmp_path):
    data = load_torchvision(settings("svhn"), tmp_path)

    assert np.array_equal(data.train.images, svhn[0])
    assert np.array_equal(data.test.images, svhn[1])
    assert data.train.labels.tolist() == [1, 2, 0, 4, 9, 0]
    assert data.test.labels.tolist() == [0, 8, 3]
    assert data.class_names == tuple("0123456789")


def test_extra_images_of_svhn_come_after_the_training_images(svhn, tmp_path):
    data = load_torchvision(settings("svhn", extra=True), tmp_path)

    assert np.array_equal(data.train.images, np.concatenate([svhn[0], pixels(7, 4)]))
    assert data.train.labels.tolist() == [1, 2, 0, 4, 9, 0, 6, 0, 5, 7]
    assert data.test.labels.tolist() == [0, 8, 3]


def test_sizes_keep_images_with_their_labels_and_hold_out_others(cifar10, tmp_path):
    train, test = cifar10
    whole = load_torchvision(settings("cifar10"), tmp_path)
    order = numpy_generator(8, "dataset", "train").permutation(20)
    kept, held_out, server = np.sort(order[:7]), np.sort(order[-3:]), np.sort(order[-5:-3])
    tested = np.sort(numpy_generator(8, "dataset", "test").permutation(6)[:2])

    data = load_torchvision(
        settings(
            "cifar10", train_size=7, test_size=2, held_out=3, server_validation=2, split_seed=8
        ),
        tmp_path,
    )

    assert np.array_equal(data.train.images, train[kept])
    assert np.array_equal(data.train.labels, whole.train.labels[kept])
    assert np.array_equal(data.held_out, train[held_out])
    assert np.array_equal(data.server_validation.images, train[server])
    assert np.array_equal(data.server_validation.labels, whole.train.labels[server])
    assert np.array_equal(data.test.images, test[tested])
    assert np.array_equal(data.test.labels, whole.test.labels[tested])


def test_a_division_takes_official_training_and_test_images_together(cifar10, tmp_path):
    images = np.concatenate(cifar10)
    whole = load_torchvision(settings("cifar10"), tmp_path)
    labels = torch.cat([whole.train.labels, whole.test.labels])
    order = numpy_generator(8, "dataset", "division").permutation(26)
    train, held_out, test = (np.sort(part) for part in np.split(order, [18, 20]))

    data = load_torchvision(settings("cifar10", division=(7, 1, 2), split_seed=8), tmp_path)

    assert np.array_equal(data.train.images, images[train])
    assert torch.equal(data.train.labels, labels[train])
    assert np.array_equal(data.held_out, images[held_out])
    assert np.array_equal(data.test.images, images[test])
    assert torch.equal(data.test.labels, labels[test])
    assert train.max() >= 20 > test.min(), "of both official parts"


@pytest.mark.parametrize("file", ["data_batch_3", "test_batch", "batches.meta"])
def test_altered_cifar_file_is_refused_by_name_and_kept(cifar10, tmp_path, file):
    path = tmp_path / "cifar-10-batches-py" / file
    altered = bytearray(path.read_bytes())
    altered[len(altered) // 2] ^= 1
    path.write_bytes(altered)

    with pytest.raises(FedstageError, match=rf"{file}: does not have the official checksum"):
        load_torchvision(settings("cifar10"), tmp_path)
    assert path.read_bytes() == altered


def test_download_with_another_checksum_is_refused_and_leaves_nothing(cifar10_archive, tmp_path):
    content = bytearray(cifar10_archive.read_bytes())
    content[50] ^= 1
    cifar10_archive.write_bytes(content)

    with pytest.raises(FedstageError, match=r"downloading cifar10 into .* failed"):
        load_torchvision(settings("cifar10"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_data_set_that_another_job_put_there_meanwhile_is_used(
    cifar10_archive, cifar10, tmp_path, monkeypatch
):
    download = datasets.CIFAR10.download

    def slow_download(self):
        download(self)
        with tarfile.open(cifar10_archive) as tar:
            tar.extractall(tmp_path, filter="data")

    monkeypatch.setattr(datasets.CIFAR10, "download", slow_download)

    data = load_torchvision(settings("cifar10"), tmp_path)

    assert np.array_equal(data.train.images, cifar10[0])
    assert [path.name for path in tmp_path.iterdir()] == ["cifar-10-batches-py"]
