import csv
import math
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fedstage.data.datasets.splits import rows_for_testing
from fedstage.data.datasets.table import load as load_table
from fedstage.errors import FedstageError
from fedstage.settings.data import TableData

HEADER = ["age", "sex", "smoker", "centre", "outcome"]
TRAIN = [
    [50, "f", "true", "Bern", "well"],
    [60, "m", "false", "Basel", "ill"],
    [40, "f", "true", "Bern", "ill"],
    [70, "m", "true", "Chur", "well"],
]
TEST = [[55, "x", "false", "Bern", "ill"], [45, "m", "true", "Basel", "well"]]


def write(path, rows, header=HEADER):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def save(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def settings(**keys):
    keys = {"label": "outcome", "client_column": "centre"} | keys
    return TableData(name="table", folder="mine", **keys)


def load(folder, **keys):
    return load_table(settings(**keys), folder)


def refused(folder, **keys):
    with pytest.raises(FedstageError) as caught:
        load(folder, **keys)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "mine/train.csv", TRAIN)
    write(tmp_path / "mine/test.csv", TEST)
    return tmp_path


# --- what is read ---------------------------------------------------------------------------------


def test_numbers_are_standardised_and_categories_coded_by_the_training_rows(folder):
    data = load(folder)
    assert data.feature_names == ("age", "sex=f", "sex=m", "smoker=false", "smoker=true")
    deviation = math.sqrt(125)  # of 50, 60, 40, 70, with mean 55
    assert data.train.images.dtype == torch.float32
    np.testing.assert_allclose(
        data.train.images,
        [
            [-5 / deviation, 1, 0, 0, 1],
            [5 / deviation, 0, 1, 1, 0],
            [-15 / deviation, 1, 0, 0, 1],
            [15 / deviation, 0, 1, 0, 1],
        ],
        rtol=1e-6,
    )
    # No training row has sex x.
    np.testing.assert_allclose(
        data.test.images, [[0, 0, 0, 1, 0], [-10 / deviation, 0, 1, 0, 1]], rtol=1e-6
    )


def test_classes_and_clients_have_the_names_in_the_table(folder):
    data = load(folder)
    assert data.class_names == ("ill", "well")
    assert data.train.labels.tolist() == [1, 0, 0, 1]
    assert data.test.labels.tolist() == [0, 1]
    assert data.client_names == ("Basel", "Bern", "Chur")
    assert data.train.clients.tolist() == [1, 0, 1, 2]
    assert data.test.clients.tolist() == [1, 0]


def test_without_a_column_of_clients_it_is_a_feature(folder):
    data = load(folder, client_column=None)
    assert data.client_names is None
    assert data.train.clients is None
    assert "centre=Chur" in data.feature_names


def test_parquet_and_csv_are_read_alike(folder, tmp_path):
    for part, rows in (("train", TRAIN), ("test", TEST)):
        age, sex, smoker, centre, outcome = zip(*rows, strict=True)
        save(
            tmp_path / f"other/mine/{part}.parquet",
            age=list(age), sex=pa.array(sex).dictionary_encode(),
            smoker=[one == "true" for one in smoker], centre=list(centre), outcome=list(outcome),
        )  # fmt: skip
    one, other = load(folder), load(tmp_path / "other")
    assert torch.equal(one.train.images, other.train.images)
    assert torch.equal(one.test.images, other.test.images)
    assert torch.equal(one.train.labels, other.train.labels)
    assert one.feature_names == other.feature_names


def test_several_files_are_one_table(folder, tmp_path):
    write(tmp_path / "other/mine/train_1.csv", TRAIN[:2])
    # Columns may stand in another order.
    swapped = [[sex, age, *rest] for age, sex, *rest in TRAIN[2:]]
    write(tmp_path / "other/mine/train_2.csv", swapped, ["sex", "age", *HEADER[2:]])
    write(tmp_path / "other/mine/test.csv", TEST)
    assert torch.equal(load(folder).train.images, load(tmp_path / "other").train.images)


def test_integer_labels_and_clients_are_sorted_as_numbers(tmp_path):
    write(tmp_path / "mine/train.csv", [[1, 10, 3], [2, 9, 20], [3, 10, 20]], ["x", "label", "by"])
    write(tmp_path / "mine/test.csv", [[1, 9]], ["x", "label"])  # clients of tests are not read
    data = load(tmp_path, label="label", client_column="by")
    assert data.class_names == ("9", "10")
    assert data.train.labels.tolist() == [1, 0, 1]
    assert data.client_names == ("3", "20")
    assert data.train.clients.tolist() == [0, 1, 1]


def test_columns_are_chosen_or_dropped(folder):
    assert load(folder, features=["smoker", "age"]).feature_names[-1] == "age"
    assert load(folder, drop=["sex", "smoker"]).feature_names == ("age",)


def test_a_constant_column_is_left_out_and_named(folder):
    write(folder / "mine/train.csv", [[*row, 7, "a"] for row in TRAIN], [*HEADER, "k", "c"])
    write(folder / "mine/test.csv", [[*row, 8, "b"] for row in TEST], [*HEADER, "k", "c"])
    data = load(folder)
    assert data.constant == ("k", "c")
    assert data.feature_names == load_names(folder)


def load_names(folder):
    return load(folder, drop=["k", "c"]).feature_names


def test_means_are_those_of_the_rows_that_train(folder):
    write(folder / "mine/train.csv", rows())
    data = load(folder, held_out=20, server_validation=30)
    assert (len(data.held_out), len(data.server_validation.labels)) == (20, 30)
    assert len(data.train.labels) == 70
    assert data.train.images[:, 0].double().mean().item() == pytest.approx(0, abs=1e-6)
    assert len(data.client_names) == data.train.clients.max() + 1


# --- missing values -------------------------------------------------------------------------------


def test_missing_values_become_the_mean_or_a_category(folder):
    write(folder / "mine/train.csv", [*TRAIN, ["", "", "true", "Chur", "ill"]])
    write(folder / "mine/test.csv", [*TEST, ["NA", "?", "", "Chur", "ill"]])
    data = load(folder, missing="mean")
    assert data.feature_names[:4] == ("age", "sex=f", "sex=m", "sex=missing")
    assert data.train.images[4].tolist() == [0, 0, 0, 1, 0, 1]
    # No training row lacks `smoker`.
    assert data.test.images[2].tolist() == [0, 0, 0, 1, 0, 0]
    assert data.train.images[0, 0].item() == pytest.approx(-5 / math.sqrt(125))


def test_quoted_text_is_no_missing_value(folder):
    text = '"age","sex","smoker","centre","outcome"\n'
    text += '50,f,true,"NA","ill"\n40,m,false,"EU","well"\n'
    (folder / "mine/train.csv").write_text(text)
    assert load(folder).client_names == ("EU", "NA")


# --- rows for testing -----------------------------------------------------------------------------


def rows(clients=3, each=40):
    return [
        [30 + 7 * n % 31, "fm"[n % 2], str(n % 3 == 0).lower(), f"c{c}", ["ill", "well"][n % 4 > 0]]
        for c in range(clients)
        for n in range(each)
    ]


def test_a_share_for_testing_is_even_over_clients_and_labels(tmp_path):
    write(tmp_path / "mine/patients.csv", rows())
    data = load(tmp_path, test_fraction=0.2)
    assert (len(data.train.labels), len(data.test.labels)) == (96, 24)
    assert torch.bincount(data.test.labels).tolist() == [6, 18]
    assert torch.bincount(data.train.clients).tolist() == [32, 32, 32]
    other = load(tmp_path, test_fraction=0.2, split_seed=1)
    assert not torch.equal(data.test.images, other.test.images)
    assert data.train.images[:, 0].double().mean().item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("fraction", [0.05, 0.29, 0.5, 0.9])
def test_counts_of_each_class_of_each_client_are_within_one_of_the_share(fraction):
    generator = np.random.default_rng(0)
    labels, clients = generator.integers(0, 3, 300), generator.integers(0, 5, 300)
    tested = rows_for_testing(fraction, generator.permutation(300), labels, clients)
    assert tested.sum() == pytest.approx(300 * fraction, abs=1)
    for client in range(5):
        for label in range(3):
            own = (clients == client) & (labels == label)
            assert abs(tested[own].sum() - fraction * own.sum()) < 1
        assert not tested[clients == client].all()


# --- bad input (more in test_inspection.py) -------------------------------------------------------


def test_settings_that_do_not_suit_the_table(folder):
    for keys, told in [
        ({"features": ["weight"]}, "data.features = 'weight': no such column; its columns are"),
        ({"drop": ["weight"]}, "data.drop = 'weight': no such column; its columns are age"),
        ({"categorical": ["weight"]}, "data.categorical = 'weight': no such column; its columns"),
    ]:
        assert told in refused(folder, **keys)


def test_a_column_that_is_no_feature(tmp_path):
    for column, told in [
        ([[1.0], [2.0]], "column 'x' is list<"),
        ([{"bytes": b"", "path": ""}] * 2, "column 'x' is struct<"),
        ([date(2020, 1, 1)] * 2, "column 'x' is "),
    ]:
        for part in ("train", "test"):
            path = tmp_path / f"mine/{part}.parquet"
            save(path, x=pa.array(column), y=[1, 2], outcome=["a", "b"])
        message = refused(tmp_path, client_column=None)
        assert told in message
        assert message.endswith("leave it out with data.drop")
        assert load(tmp_path, client_column=None, drop=["x"]).feature_names == ("y",)


def test_the_type_of_a_column_follows_from_all_rows_of_a_large_file(tmp_path):
    lines = "\n".join(f"{n},{'ab'[n % 2]}" for n in range(200_000))
    for part in ("train", "test"):
        write(tmp_path / f"mine/{part}.csv", [], ["x", "outcome"])
        with (tmp_path / f"mine/{part}.csv").open("a") as file:
            file.write(f"{lines}\nfew,a\n")
    assert "row 200002: x = 'few': a text among numbers" in refused(tmp_path, client_column=None)


def test_settings_that_contradict_one_another():
    for keys, told in [
        ({"features": ["a"], "drop": ["b"]}, "features and drop: give one of them"),
        ({"test_fraction": 0.2, "division": [7, 1, 2]}, "test_fraction and division: give one"),
        (
            {"features": ["outcome"]},
            "features: 'outcome': must not be the column of labels, clients or groups",
        ),
    ]:
        with pytest.raises(ValueError, match=told):
            settings(**keys)


def test_the_client_of_each_test_row_is_kept(folder):
    write(folder / "mine/test.csv", [*TEST, [41, "m", "true", "Geneva", "ill"]])
    data = load(folder)
    assert data.client_names == ("Basel", "Bern", "Chur")
    assert data.test.clients.tolist() == [1, 0, -1]  # no training row is of Geneva
    assert load(folder, client_column=None, drop=["centre"]).test.clients is None
    write(folder / "mine/test.csv", [row[:3] + row[4:] for row in TEST], HEADER[:3] + HEADER[4:])
    assert load(folder).test.clients is None


def test_test_rows_that_are_drawn_keep_their_clients(tmp_path):
    write(tmp_path / "mine/patients.csv", rows())
    for how in ({"test_fraction": 0.2}, {"division": [8, 0, 2]}):
        data = load(tmp_path, **how)
        counts = [torch.bincount(part.clients, minlength=3) for part in (data.train, data.test)]
        assert sum(counts).tolist() == [40, 40, 40]
        assert min(counts[1].tolist()) > 0
    assert counts[1].sum() == 24
