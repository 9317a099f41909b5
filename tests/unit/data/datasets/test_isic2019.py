"""Fed-ISIC2019 on small pictures in the layout that FLamby's preprocessing leaves."""

import numpy as np
import pytest
import torch
from PIL import Image

from fedstage.data.datasets import load
from fedstage.data.datasets.flamby import LESIONS
from fedstage.errors import FedstageError
from fedstage.randomness import numpy_generator
from fedstage.settings.data import Isic2019

PICTURES, TABLE = "ISIC_2019_Training_Input_preprocessed", "train_test_split"
HEAD = "image,MEL,NV,BCC,AK,BKL,DF,VASC,SCC,UNK,target,center,fold,fold2"
#: Name, class, centre, fold, width and height.
ROWS = [
    ("ISIC_3", 7, 0, "train", 12, 8),
    ("ISIC_1", 1, 5, "test", 8, 10),
    ("ISIC_2_downsampled", 0, 4, "train", 9, 9),
    ("ISIC_9", 1, 5, "train", 8, 8),
]


def settings(**changes):
    return Isic2019(name="isic2019", **{"crop": 6, **changes})


def line(name, label, centre, fold):
    hot = ",".join("1.0" if label == index else "0.0" for index in range(9))
    return f"{name},{hot},{label},{centre},{fold},{fold}_{centre}"


def write_table(folder, rows=ROWS, head=HEAD):
    lines = [head, *(line(*row[:4]) for row in rows)]
    (folder / TABLE).write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "fed_isic2019"
    (made / PICTURES).mkdir(parents=True)
    write_table(made)
    for seed, (name, _, _, _, width, height) in enumerate(ROWS):
        pixels = np.random.default_rng(seed).integers(256, size=(height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(made / PICTURES / f"{name}.jpg", quality=95)
    return made


def middle(folder, name, crop=6):
    pixels = np.asarray(Image.open(folder / PICTURES / f"{name}.jpg").convert("RGB"))
    top, left = (pixels.shape[0] - crop) // 2, (pixels.shape[1] - crop) // 2
    return torch.from_numpy(pixels[top : top + crop, left : left + crop].copy()).permute(2, 0, 1)


def test_pictures_labels_and_centres_are_those_of_the_table(folder):
    data = load(settings(), folder.parent)

    names = ["ISIC_3", "ISIC_2_downsampled", "ISIC_9"]
    assert data.train.images.dtype == torch.uint8
    assert torch.equal(data.train.images, torch.stack([middle(folder, name) for name in names]))
    assert data.train.labels.tolist() == [7, 0, 1]
    assert data.train.clients.tolist() == [0, 4, 5]
    assert torch.equal(data.test.images, middle(folder, "ISIC_1")[None])
    assert (data.test.labels.tolist(), data.test.clients.tolist()) == ([1], [5])
    assert data.class_names == LESIONS
    assert data.test_own is None


def test_a_division_takes_pictures_of_both_folds_with_their_centres(folder):
    names = ["ISIC_3", "ISIC_2_downsampled", "ISIC_9", "ISIC_1"]
    order = numpy_generator(1, "dataset", "division").permutation(4)
    assert 3 in order[:2], "a picture for testing is trained on"

    data = load(settings(division=(2, 1, 1), split_seed=1), folder.parent)

    train = np.sort(order[:2])
    assert torch.equal(data.train.images, torch.stack([middle(folder, names[i]) for i in train]))
    assert data.train.clients.tolist() == [[0, 4, 5, 5][i] for i in train]
    assert torch.equal(data.held_out, middle(folder, names[order[2]])[None])
    assert torch.equal(data.test.images, middle(folder, names[order[3]])[None])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / TABLE).unlink(),
            r"train_test_split: No such file .*take it from FLamby",
        ),
        (
            lambda folder: (folder / PICTURES / "ISIC_9.jpg").unlink(),
            r"ISIC_9\.jpg: No such file",
        ),
        (
            lambda folder: (folder / PICTURES / "ISIC_9.jpg").write_bytes(b"\xff\xd8\xff"),
            r"ISIC_9\.jpg: cannot decode the image",
        ),
        (
            lambda folder: write_table(folder, head=HEAD.replace("center", "hospital")),
            "has no column 'center'",
        ),
        (
            lambda folder: write_table(folder, [*ROWS, ("a", 0, 0, "fold3")]),
            "line 6: fold = 'fold3': must be one of train, test",
        ),
        (
            lambda folder: write_table(folder, [*ROWS, ("a", 8, 0, "test")]),
            "line 6: target = '8': must be one of 0, 1",
        ),
        (
            lambda folder: write_table(folder, [*ROWS, ("a", 0, "x", "test")]),
            "line 6: center = 'x': must be one of 0, 1",
        ),
        (lambda folder: write_table(folder, ROWS[:1]), "fold: no picture is for training, or none"),
        (lambda folder: write_table(folder, [*ROWS, ROWS[0]]), "image: .* is there twice"),
    ],
    ids=["table", "picture", "damage", "column", "fold", "class", "centre", "no test", "twice"],
)
def test_faults_of_files_are_named_in_one_line(folder, change, message):
    change(folder)

    with pytest.raises(FedstageError, match=message) as caught:
        load(settings(), folder.parent)
    assert "\n" not in str(caught.value)
