import json
import os
import shutil
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from fedstage.data.datasets.own_images import load as load_parquet
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import ParquetData

IMAGE_TYPE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def pixels(seed, n, height=6, width=6):
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def encoded(array, image_format="PNG", **options):
    buffer = BytesIO()
    Image.fromarray(array).save(buffer, image_format, **options)
    return buffer.getvalue()


def write(path, images, labels, label="label", column="img", metadata=None, **columns):
    """Write arrays (encoded as PNG), bytes or None as images, with page checksums."""
    rows = [
        {"bytes": encoded(image) if isinstance(image, np.ndarray) else image, "path": f"{row}.png"}
        for row, image in enumerate(images)
    ]
    table = pa.table({column: pa.array(rows, IMAGE_TYPE), label: labels, **columns})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata(metadata), path, write_page_checksum=True)


def settings(**keys):
    return ParquetData(name="parquet", folder="mine", **keys)


def load(folder, **keys):
    return load_parquet(settings(**keys), folder)


@pytest.fixture
def folder(tmp_path):
    """A data folder with 12 training and 5 test images, labels 0, 1, 2, 0, 1, 2, ..."""
    write(tmp_path / "mine/train.parquet", pixels(1, 12), [row % 3 for row in range(12)])
    write(tmp_path / "mine/test.parquet", pixels(2, 5), [row % 3 for row in range(5)])
    return tmp_path


def channels_first(images):
    return images.transpose(0, 3, 1, 2)


# --- what is read ---------------------------------------------------------------------------------


def test_images_labels_and_numbered_classes_are_read_in_order(folder):
    data = load(folder)

    assert np.array_equal(data.train.images, channels_first(pixels(1, 12)))
    assert np.array_equal(data.test.images, channels_first(pixels(2, 5)))
    assert data.train.images.dtype == torch.uint8
    assert data.train.labels.dtype == torch.int64
    assert data.train.labels.tolist() == [0, 1, 2] * 4
    assert data.test.labels.tolist() == [0, 1, 2, 0, 1]
    assert data.held_out.shape == (0, 3, 6, 6)
    assert data.class_names == ("0", "1", "2")
    assert data.train.clients is None


def test_shards_are_read_in_order_of_their_names(folder):
    (folder / "mine/train.parquet").unlink()
    images = pixels(3, 10)
    write(folder / "mine/train-00001-of-00002.parquet", images[7:], [2, 1, 0])
    write(folder / "mine/train-00000-of-00002.parquet", images[:7], [0, 1, 2, 0, 1, 2, 0])

    data = load(folder)

    assert np.array_equal(data.train.images, channels_first(images))
    assert data.train.labels.tolist() == [0, 1, 2, 0, 1, 2, 0, 2, 1, 0]


def test_many_images_stay_in_order(folder):
    images = pixels(3, 600, 2, 2)
    write(folder / "mine/train.parquet", images, [row % 3 for row in range(600)])
    write(folder / "mine/test.parquet", images[:2], [0, 1])

    assert np.array_equal(load(folder).train.images, channels_first(images))


def test_sizes_keep_rows_of_all_shards_with_labels_and_clients(folder):
    (folder / "mine/train.parquet").unlink()
    images, labels = pixels(3, 20), np.arange(20) % 7
    for index, rows in enumerate([slice(0, 8), slice(8, 9), slice(9, 20)]):
        path = folder / f"mine/train-{index}.parquet"
        write(path, images[rows], labels[rows], user=np.arange(20)[rows])
    order = numpy_generator(2, "dataset", "train").permutation(20)
    kept, held_out, server = np.sort(order[:9]), np.sort(order[-4:]), np.sort(order[-6:-4])
    tested = np.sort(numpy_generator(2, "dataset", "test").permutation(5)[:3])

    data = load(
        folder, train_size=9, test_size=3, held_out=4, server_validation=2, split_seed=2,
        client_column="user",
    )  # fmt: skip

    assert np.array_equal(data.train.images, channels_first(images[kept]))
    assert np.array_equal(data.train.labels, labels[kept])
    assert np.array_equal(data.train.clients, np.arange(9))
    assert np.array_equal(data.held_out, channels_first(images[held_out]))
    assert np.array_equal(data.server_validation.images, channels_first(images[server]))
    assert np.array_equal(data.server_validation.labels, labels[server])
    assert np.array_equal(data.test.images, channels_first(pixels(2, 5)[tested]))


def test_only_kept_rows_are_decoded(folder):
    order = numpy_generator(0, "dataset", "train").permutation(12)
    images = list(pixels(1, 12))
    for row in order[3:]:
        images[row] = b"not an image"
    write(folder / "mine/train.parquet", images, [0, 1, 2] * 4)

    data = load(folder, train_size=3)

    assert np.array_equal(data.train.images, channels_first(pixels(1, 12)[np.sort(order[:3])]))
    with pytest.raises(FedstageError, match="cannot decode"):
        load(folder, train_size=4)


@pytest.mark.parametrize(
    ("image_format", "options"), [("PNG", {}), ("WEBP", {"lossless": True}), ("BMP", {})]
)
def test_lossless_formats_give_the_exact_pixels(folder, image_format, options):
    images = pixels(5, 4)
    files = [encoded(image, image_format, **options) for image in images]
    write(folder / "mine/train.parquet", files, [0, 1, 2, 0])

    assert np.array_equal(load(folder).train.images, channels_first(images))


def test_grey_and_palette_images_become_rgb(folder):
    grey = pixels(6, 1)[0, :, :, 0]
    palette = BytesIO()
    Image.fromarray(grey).convert("P").save(palette, "PNG")
    write(folder / "mine/train.parquet", [encoded(grey), palette.getvalue()], [0, 1])

    images = load(folder).train.images

    assert np.array_equal(images, np.broadcast_to(grey, (2, 3, 6, 6)))


def test_image_size_resizes_bilinearly_what_has_another_size(folder):
    wide, fitting = pixels(7, 1, 8, 12)[0], pixels(8, 1, 4, 4)[0]
    write(folder / "mine/train.parquet", [wide, fitting], [0, 1])

    data = load(folder, image_size=4)

    resized = Image.fromarray(wide).resize((4, 4), Image.Resampling.BILINEAR)
    assert np.array_equal(data.train.images[0], np.asarray(resized).transpose(2, 0, 1))
    assert np.array_equal(data.train.images[1], fitting.transpose(2, 0, 1))
    assert data.test.images.shape == (5, 3, 4, 4)


def test_resampling_by_area_takes_the_mean_of_the_pixels_that_each_covers(folder):
    wide = pixels(7, 1, 8, 8)[0]
    write(folder / "mine/train.parquet", [wide], [0])

    images = load(folder, image_size=4, resampling="area").train.images

    means = wide.astype(float).reshape(4, 2, 4, 2, 3).mean((1, 3)).transpose(2, 0, 1)
    assert np.abs(images[0].numpy() - means).max() <= 1  # of two passes, each rounded


def test_image_column_and_label_column_may_have_other_names(folder):
    write(folder / "mine/train.parquet", pixels(1, 2), [0, 1], label="fine", column="image")
    write(folder / "mine/test.parquet", pixels(2, 2), [1, 1], label="fine", column="image")

    data = load(folder, label="fine")

    assert np.array_equal(data.train.images, channels_first(pixels(1, 2)))
    assert data.test.labels.tolist() == [1, 1]


def test_number_of_classes_does_not_depend_on_the_sizes(folder):
    for name, n in (("train", 12), ("test", 5)):
        labels = [0] * (n - 1) + [6 if name == "test" else 1]
        write(folder / f"mine/{name}.parquet", pixels(1, n), labels)

    data = load(folder, train_size=2, test_size=1)

    assert data.class_names == tuple("0123456")


# --- names of the classes -------------------------------------------------------------------------


def huggingface(feature):
    return {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}


@pytest.mark.parametrize(
    "metadata",
    [
        {"label_names": json.dumps(["ant", "bee", "cow", "dog"])},
        huggingface({"_type": "ClassLabel", "names": ["ant", "bee", "cow", "dog"]}),
        {
            "label_names": json.dumps(["ant", "bee", "cow", "dog"]),
            **huggingface({"_type": "ClassLabel", "names": ["a", "b", "c"]}),
        },
    ],
)
def test_class_names_come_from_the_metadata(folder, metadata):
    for name, n in (("train", 12), ("test", 5)):
        labels = [row % 3 for row in range(n)]
        write(folder / f"mine/{name}.parquet", pixels(1, n), labels, metadata=metadata)

    assert load(folder).class_names == ("ant", "bee", "cow", "dog")


@pytest.mark.parametrize(
    "metadata",
    [
        huggingface({"_type": "Value", "dtype": "int64"}),
        {"huggingface": json.dumps({"info": {}})},
        {"fine_label_names": json.dumps(["ant", "bee", "cow"])},
    ],
)
def test_classes_are_numbered_where_the_metadata_does_not_name_them(folder, metadata):
    for name, n in (("train", 12), ("test", 5)):
        labels = [row % 3 for row in range(n)]
        write(folder / f"mine/{name}.parquet", pixels(1, n), labels, metadata=metadata)

    assert load(folder).class_names == ("0", "1", "2")


# --- clients --------------------------------------------------------------------------------------


def test_integer_clients_are_numbered_in_numeric_order_over_shards(folder):
    (folder / "mine/train.parquet").unlink()
    write(folder / "mine/train-0.parquet", pixels(1, 3), [0, 1, 2], user=[100, 9, 100])
    write(folder / "mine/train-1.parquet", pixels(2, 2), [0, 1], user=[-5, 9])

    data = load(folder, client_column="user")

    assert data.train.clients.tolist() == [2, 1, 2, 0, 1]
    assert data.test.clients is None


def test_the_client_of_each_test_image_is_kept(folder):
    users = ["b", "a", "b", "c", "a", "c", "b", "a", "b", "c", "a", "c"]
    write(folder / "mine/train.parquet", pixels(1, 12), [0, 1, 2] * 4, user=users)
    write(folder / "mine/test.parquet", pixels(2, 5), [0, 1, 2, 0, 1], user=list("cadab"))

    data = load(folder, client_column="user")

    assert data.client_names == ("a", "b", "c")
    assert data.test.clients.tolist() == [2, 0, -1, 0, 1]  # no training image is of d


def test_a_division_takes_clients_of_test_files_as_well(folder):
    users = np.array([f"u{row % 5}" for row in range(17)])
    write(folder / "mine/train.parquet", pixels(1, 12), [0, 1, 2] * 4, user=list(users[:12]))
    write(folder / "mine/test.parquet", pixels(2, 5), [0, 1, 2, 0, 1], user=list(users[12:]))
    order = numpy_generator(0, "dataset", "division").permutation(17)
    kept, public, tested = (np.sort(part) for part in np.split(order, [11, 13]))
    images = np.concatenate([pixels(1, 12), pixels(2, 5)])

    data = load(folder, client_column="user", division=(7, 1, 2))

    assert kept.max() >= 12 > tested.min(), "of both files"
    assert np.array_equal(data.train.images, channels_first(images[kept]))
    assert np.array_equal(data.held_out, channels_first(images[public]))
    assert np.array_equal(data.test.images, channels_first(images[tested]))
    names = sorted(set(users[kept]))
    assert [names[client] for client in data.test.clients] == users[tested].tolist()
    assert [names[client] for client in data.train.clients] == users[kept].tolist()


# --- what is refused (more in test_inspection.py) -------------------------------------------------


@pytest.fixture
def refused(folder, tmp_path):
    """A function that changes a copy of the folder and expects one line for the error."""

    def expect(message, change, **keys):
        copy = Path(mkdtemp(dir=tmp_path))
        shutil.copytree(folder / "mine", copy / "mine")
        change(copy / "mine")
        with pytest.raises(FedstageError, match=message) as caught:
            load(copy, **keys)
        assert "\n" not in str(caught.value)

    return expect


def has(images, labels, name="train", **columns):
    """Return a change of a folder: another file for training or for testing."""
    return lambda place: write(place / f"{name}.parquet", images, labels, **columns)


def shards(*files):
    """Return a change of a folder: several files for training, of images, labels and clients."""

    def change(place):
        (place / "train.parquet").unlink()
        for number, (images, labels, users) in enumerate(files):
            write(place / f"train-{number}.parquet", images, labels, user=users)

    return change


def names(*classes):
    return {"label_names": json.dumps(classes)}


def test_invalid_labels_are_refused_by_file_and_row(refused):
    for name in ("train", "test"):
        for labels, message in [
            ([0, 1, -1, 2], r"row 2: label = -1: must be 0\.\.2"),
            ([0, 1, 10**12, 2], r"row 2: label = 1000000000000: must be 0\.\.99999"),
            ([0, None, 1, 2], "row 1: label: missing"),
            ([0.0, 1.0, 2.0, 0.0], r"data\.label = 'label': column is double; labels must be"),
        ]:
            refused(rf"{name}\.parquet: {message}", has(pixels(1, 4), labels, name))


def test_wrong_names_of_classes_are_refused(refused):
    for text, message in [
        ("[", "is not JSON"),
        ('{"0": "ant"}', "must list the names"),
        ("[1, 2, 3]", "must list the names"),
    ]:
        change = has(pixels(1, 2), [0, 1], metadata={"label_names": text})
        refused(rf"train\.parquet: metadata.*: {message}", change)

    def named(place, train, test, labels):
        write(place / "train.parquet", pixels(1, 2), [0, 1], metadata=train)
        write(place / "test.parquet", pixels(1, 2), labels, metadata=test)

    ants, bees = names("ant", "bee"), names("bee", "ant")
    message = r"test\.parquet: class names differ .*train\.parquet"
    refused(message, lambda place: named(place, ants, bees, [0, 1]))
    message = r"test\.parquet: row 1: label = 2: must be 0\.\.1"
    refused(message, lambda place: named(place, ants, ants, [0, 2]))


def test_images_of_another_form_are_refused(refused):
    change = has(pixels(1, 2), [0, 1], "test", column="picture")
    refused(r"test\.parquet: must have one column 'img' or 'image'", change)
    damaged = [*pixels(1, 2), b"no image"]
    change = shards((pixels(1, 3), [0, 1, 2], [0] * 3), (damaged, [0, 1, 2], [0] * 3))
    message = r"train-1\.parquet: row 2: cannot decode the image \(cannot identify image file\)$"
    refused(message, change)
    held_out = int(numpy_generator(0, "dataset", "train").permutation(12)[-1])
    images = list(pixels(1, 12))
    images[held_out] = pixels(1, 1, 7, 7)[0]
    refused(f"row {held_out}: image of shape", has(images, [0, 1, 2] * 4), held_out=1)


def test_damaged_and_missing_files_are_refused(refused):
    def cut(place):
        path = place / "train.parquet"
        path.write_bytes(path.read_bytes()[:-20])

    def alter(place):
        path = place / "train.parquet"
        content = bytearray(path.read_bytes())
        content[content.index(b"IDAT") + 20] ^= 1
        path.write_bytes(content)

    refused(r"train\.parquet: truncated, or not a Parquet file", cut)
    refused(r"train\.parquet: truncated or altered", alter)
    message = r"/mine: has no train\*\.parquet"
    refused(message, lambda place: (place / "train.parquet").unlink())


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "WEBP"])
def test_altered_images_never_end_in_another_exception(folder, image_format):
    rng = np.random.default_rng(0)
    valid = encoded(pixels(1, 1)[0], image_format)
    refused = 0
    for _ in range(40):
        altered = bytearray(valid)
        altered[rng.integers(len(valid))] = rng.integers(256)
        write(folder / "mine/train.parquet", [bytes(altered)], [0])
        try:
            load(folder, image_size=6)
        except FedstageError as error:
            refused += "row 0: cannot decode the image" in str(error)
    assert refused


# --- real data ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def public_data():
    default = Path(__file__).resolve().parents[5] / "shared" / "data"
    folder = Path(os.environ.get("FEDSTAGE_DATA", default))
    if not (folder / "cifar10/train.parquet").is_file():
        pytest.skip(f"needs CIFAR in Parquet: {folder} has no cifar10/train.parquet")
    return folder


def test_real_cifar10_subset_has_its_classes_shape_and_disjoint_parts(public_data):
    chosen = ParquetData(
        name="parquet", folder="cifar10", train_size=1000, test_size=500, held_out=200
    )

    data = load_parquet(chosen, public_data)

    assert data.class_names[0] == "airplane"
    assert data.class_names[9] == "truck"
    assert data.train.images.shape == (1000, 3, 32, 32)
    assert data.test.images.shape == (500, 3, 32, 32)
    assert data.held_out.shape == (200, 3, 32, 32)
    counts = torch.bincount(data.train.labels, minlength=10)
    assert counts.min() > 60  # 100 expected of each class
    assert counts.max() < 140
    trained = {image.numpy().tobytes() for image in data.train.images}
    assert not trained & {image.numpy().tobytes() for image in data.held_out}
