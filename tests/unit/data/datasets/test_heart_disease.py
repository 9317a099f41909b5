"""Fed-Heart-Disease on small files in the official format, and on the real ones where they are."""

import csv
import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import train_test_split

from fedstage.data.datasets import flamby, load
from fedstage.data.datasets.flamby import CENTRES, as_dataset, file_of, read_centre
from fedstage.errors import FedstageError
from fedstage.settings.data import HeartDisease

SETTINGS = HeartDisease(name="heart_disease")
REAL = Path(os.environ.get("FEDSTAGE_DATA", "nowhere"), "heart_disease")
ROWS = {"cleveland": 40, "hungarian": 35, "switzerland": 12, "va": 21}
FEATURES = ["age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak"]
FEATURES += ["cp=2", "cp=3", "cp=4", "restecg=1", "restecg=2"]


def rows_of(centre):
    """Return rows of a made-up centre as texts: some incomplete, one centre all but ill."""
    draw = np.random.default_rng(list(CENTRES).index(centre))
    rows = []
    for number in range(ROWS[centre]):
        numbers = [draw.integers(29, 77), draw.integers(2), draw.integers(1, 5)]
        numbers += [draw.integers(90, 200), draw.integers(120, 400), draw.integers(2)]
        numbers += [draw.integers(3), draw.integers(70, 200), draw.integers(2)]
        numbers += [round(draw.uniform(0, 4), 1), "?", "?", draw.choice([3, 6, 7])]
        ill = number > 0 if centre == "switzerland" else draw.integers(2)
        row = [str(value) for value in [*numbers, ill * draw.integers(1, 5)]]
        if number % 7 == 3:
            row[int(draw.integers(10))] = "?"
        rows.append(row)
    return rows


def write(folder, centre, rows):
    text = "".join(",".join(row) + "\n" for row in rows)
    (folder / file_of(centre)).write_text(text)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "heart_disease"
    made.mkdir()
    for centre in CENTRES:
        write(made, centre, rows_of(centre))
    return made


@pytest.fixture
def trusted(folder, monkeypatch):
    """The folder, its files taken for the official ones."""
    digests = {
        centre: hashlib.sha256((folder / file_of(centre)).read_bytes()).hexdigest()
        for centre in CENTRES
    }
    monkeypatch.setattr(flamby, "CENTRES", digests)
    return folder


def plainly(folder):
    """Prepare the files with pandas, by the description alone; statistics in plain NumPy."""
    frames = []
    for number, centre in enumerate(CENTRES):
        frame = pd.read_csv(folder / file_of(centre), header=None, na_values="?")
        frame = frame.drop(columns=[10, 11, 12]).dropna().assign(centre=number)
        ill = (frame[13] != 0).astype(int)
        counts = ill.value_counts().reindex([0, 1], fill_value=0)
        stratify = None if (counts <= 2).any() else ill
        train, _ = train_test_split(
            np.arange(len(frame)), train_size=0.66, test_size=1 - 0.66, random_state=43,
            stratify=stratify,
        )  # fmt: skip
        frames.append(frame.assign(ill=ill, train=np.isin(np.arange(len(frame)), train)))
    every = pd.concat(frames, ignore_index=True)
    coded = pd.get_dummies(every.astype({2: int, 6: int}), columns=[2, 6], drop_first=True)
    columns = [0, 1, 3, 4, 5, 7, 8, 9, "2_2", "2_3", "2_4", "6_1", "6_2"]
    return coded, coded[columns].to_numpy(float)


def standardised(rows, reference):
    return (rows - reference.mean(0)) / (reference.std(0, ddof=1) + 1e-9)


def check_against_the_plain_way(data, folder):
    table, features = plainly(folder)
    train, centre = table["train"].to_numpy(bool), table["centre"].to_numpy()
    for number in range(len(CENTRES)):
        own = features[train & (centre == number)]
        tested = features[~train & (centre == number)]
        of_train, of_test = data.train.clients == number, data.test.clients == number
        pairs = [
            (data.train.images[of_train], standardised(own, own)),
            (data.test.images[of_test], standardised(tested, features[train])),
            (data.test_own.images[of_test], standardised(tested, own)),
        ]
        for found, expected in pairs:
            np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=2e-6)
        ill = table["ill"].to_numpy()
        assert data.train.labels[of_train].tolist() == ill[train & (centre == number)].tolist()
        assert data.test.labels[of_test].tolist() == ill[~train & (centre == number)].tolist()


# --- made-up files --------------------------------------------------------------------------------


def test_samples_are_those_of_the_description(trusted):
    data = load(SETTINGS, trusted.parent)

    assert data.train.images.shape[1] == len(FEATURES) == 13
    check_against_the_plain_way(data, trusted)


def test_types_classes_and_parts_that_are_empty(trusted):
    data = load(SETTINGS, trusted.parent)

    assert data.train.images.dtype == data.test.images.dtype == torch.float32
    assert data.train.labels.dtype == data.train.clients.dtype == torch.int64
    assert data.class_names == ("no disease", "disease")
    assert len(data.held_out) == len(data.server_validation.labels) == 0
    assert torch.equal(data.test.labels, data.test_own.labels)
    assert torch.equal(data.test.clients, data.test_own.clients)


def test_rows_with_a_value_missing_are_dropped_unless_in_a_dropped_column(folder):
    rows = rows_of("va")
    complete = [i for i, row in enumerate(rows) if "?" not in row[:10]]

    centre = read_centre(folder / file_of("va"))

    assert 0 < len(complete) < len(rows)
    assert centre.lines.tolist() == complete
    assert centre.features[:, 0].tolist() == [float(rows[i][0]) for i in complete]
    assert sorted([*centre.train, *centre.test]) == list(range(len(complete)))


def test_what_varies_in_no_training_row_of_a_centre_does_no_harm(folder):
    rows = rows_of("switzerland")
    for row in rows:
        row[4] = "0"
    write(folder, "switzerland", rows)

    data = as_dataset([read_centre(folder / file_of(centre)) for centre in CENTRES])

    chol = FEATURES.index("chol")
    for part in (data.train, data.test_own):
        assert part.images[part.clients == 2][:, chol].eq(0).all()


def test_a_missing_folder_is_downloaded_and_verified(trusted, tmp_path, monkeypatch):
    monkeypatch.setattr(flamby, "SOURCE", trusted.as_uri())
    (tmp_path / "new").mkdir()

    data = load(SETTINGS, tmp_path / "new")

    assert torch.equal(data.train.images, load(SETTINGS, trusted.parent).train.images)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["heart_disease"]


def test_a_download_that_fails_leaves_nothing(trusted, tmp_path, monkeypatch):
    monkeypatch.setattr(flamby, "SOURCE", trusted.as_uri())
    (trusted / file_of("va")).unlink()
    (tmp_path / "new").mkdir()

    with pytest.raises(FedstageError, match=r"heart_disease: not there, and downloading .*failed"):
        load(SETTINGS, tmp_path / "new")

    assert list((tmp_path / "new").iterdir()) == []


def test_an_altered_file_is_named(trusted):
    path = trusted / file_of("hungarian")
    path.write_text(path.read_text().replace("?", "-9"))

    with pytest.raises(FedstageError, match=r"processed\.hungarian\.data: does not have the"):
        load(SETTINGS, trusted.parent)


def test_a_missing_file_is_named_and_the_others_stay(trusted):
    (trusted / file_of("va")).unlink()

    with pytest.raises(FedstageError, match=r"processed\.va\.data: missing; delete .*heart_dis"):
        load(SETTINGS, trusted.parent)

    assert len(list(trusted.iterdir())) == 3


# --- the real files -------------------------------------------------------------------------------

with_real_files = pytest.mark.skipif(
    not REAL.is_dir(), reason="FEDSTAGE_DATA has no folder heart_disease: the UCI files are absent"
)


@with_real_files
def test_split_of_the_real_rows_is_the_recorded_one():
    if not (REAL / "split_rows.csv").is_file():
        pytest.skip(f"{REAL} has no split_rows.csv, the recorded split")
    with (REAL / "split_rows.csv").open() as file:
        recorded = {
            (row["centre"], int(row["row"])): (row["set"], int(row["label"]))
            for row in csv.DictReader(file)
        }
    found = {}
    for name in CENTRES:
        centre = read_centre(REAL / file_of(name))
        for part, rows in (("train", centre.train), ("test", centre.test)):
            for row in rows:
                found[name, int(centre.lines[row])] = (part, int(centre.labels[row]))

    assert len(found) == 740
    assert found == recorded
