"""Nothing of a user's data is merged, dropped or reduced without a word."""

import csv
import json
import os
import shutil
import struct
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from PIL import Image

from fedstage.data.datasets import load
from fedstage.data.layouts import count_clients
from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.execution.requirements import check_tested
from fedstage.settings.data import DataOption
from fedstage.settings.validation import validate

FIXED = {"test_fraction": 0.1, "label": "y"}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def table(path, header, rows, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerows([header, *rows])


def picture(path, level=0, size=(8, 8)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (level, 0, 0)).save(path, "PNG" if path.suffix != ".jfif" else "JPEG")


def read(place, name="table", **keys):
    given = {"data": {"name": name, "folder": place.name, **keys}}
    return load(validate(DataOption, given, "").data, place.parent)


def said(caplog):
    return "\n".join(caplog.messages)


def numbered(values):
    """Rows of a number, a class and each of the values, some times."""
    return [[n, "ab"[n % 2], value] for n, value in enumerate(list(values) * 8)]


# --- who somebody is ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("001", "01", "1", "10"),
        ("1", "1.0", "1e0", "x"),
        ("true", "True", "TRUE"),
        ("2020-01-01", "2020-01-01 00:00:00", "x"),
        ("12345678901234567890", "12345678901234567891", "1"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_clients_are_who_the_file_says(place, names, suffix):
    rows = numbered(names)
    if suffix == "parquet":
        x, y, by = (list(column) for column in zip(*rows, strict=True))
        pq.write_table(pa.table({"x": x, "y": y, "by": by}), place / "all.parquet")
    else:
        table(place / f"all.{suffix}", ["x", "y", "by"], rows, "\t" if suffix == "tsv" else ",")
    data = read(place, **FIXED, client_column="by")
    assert set(data.client_names) == set(names)
    given = {"data": {"table": {"folder": "mine", "client_column": "by", **FIXED}}}
    assert count_clients(validate(DataOption, given, "").data, place.parent) == len(names)


@pytest.mark.parametrize(
    "names", [("00", "0"), ("False", "false"), ("1_000", "1000"), ("+1", "1x")]
)
def test_classes_are_those_of_the_file(place, names):
    table(place / "all.csv", ["x", "z", "y"], [[n, n % 3, names[n % 2]] for n in range(12)])
    assert set(read(place, **FIXED).class_names) == set(names)


@pytest.mark.parametrize("codes", [("007", "07", "7a"), ("00501", "10001", "x"), ("01", "1", "1-")])
def test_categories_are_texts(place, codes):
    table(place / "all.csv", ["x", "y", "code"], numbered(codes))
    names = read(place, **FIXED, categorical=["code"]).feature_names
    assert {f"code={code}" for code in codes} == set(names[1:])
    table(place / "more.csv", ["x", "y", "code"], numbered(["1", "2", "3"]))
    names = read(place, **FIXED, categorical=["code"]).feature_names
    assert set(names[1:]) == {f"code={code}" for code in (*codes, "1", "2", "3")}


def test_numbers_with_leading_zeros_are_categories_and_said(place, caplog):
    table(place / "all.csv", ["x", "y", "zip"], numbered(["00501", "00544", "00601"]))
    assert "zip=00501" in read(place, **FIXED).feature_names
    assert "categories that are numbers with leading zeros: zip = '00501'" in said(caplog)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_integers_beyond_float64_stay_apart_as_names_and_are_said_as_numbers(place, caplog, suffix):
    large = [2**53 + n % 2 for n in range(12)]
    columns = {"x": large, "z": range(12), "y": large, "by": large, "to": large}
    if suffix == "csv":
        table(place / "all.csv", list(columns), zip(*columns.values(), strict=True))
    else:
        kept = {key: list(own) for key, own in columns.items()}
        pq.write_table(pa.table(kept), place / "all.parquet")
    data = read(place, **FIXED, client_column="by", categorical=["to"])
    names = (str(2**53), str(2**53 + 1))
    assert data.class_names == data.client_names == names
    assert data.feature_names == ("z", *(f"to={name}" for name in names))
    row = "csv: row 2" if suffix == "csv" else "parquet: row 0"
    told = f"column 'x': numbers beyond 2**53 keep 16 digits: {2**53} in {place}/all.{row}"
    assert [line for line in caplog.messages if "2**53 keep" in line] == [told]


# --- empty is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["", " ", "\u00a0", "\u200b\ufeff", "\u3164\u2800"])
@pytest.mark.parametrize("column", ["y", "by"])
def test_an_empty_name_is_missing(place, empty, column):
    rows = [[n, "ab"[n % 2], "cd"[n % 2]] for n in range(8)]
    rows[3][1 if column == "y" else 2] = empty
    table(place / "all.csv", ["x", "y", "by"], rows, quoting=csv.QUOTE_ALL)
    with pytest.raises(FedstageError, match=f"row 5: {column}: missing; a value is required"):
        read(place, **FIXED, client_column="by")
    x, y, by = (list(values) for values in zip(*rows, strict=True))
    pq.write_table(pa.table({"x": x, "y": y, "by": by}), place / "all.parquet")
    (place / "all.csv").unlink()
    with pytest.raises(FedstageError, match=f"row 3: {column}: missing; a value is required"):
        read(place, **FIXED, client_column="by")


@pytest.mark.parametrize("empty", ["", " ", "  "])
def test_an_empty_number_is_missing(place, empty):
    rows = [[str(n) if n % 4 else empty, "ab"[n % 2], f"{n}.5"] for n in range(12)]
    table(place / "all.csv", ["x", "y", "z"], rows, quoting=csv.QUOTE_ALL)
    with pytest.raises(FedstageError, match="3 of 12 rows lack values"):
        read(place, **FIXED)
    assert read(place, **FIXED, missing="mean").feature_names == ("x", "z")


def test_an_empty_category_is_missing(place):
    rows = [["m" if n % 4 else "", "ab"[n % 2], n] for n in range(12)]
    table(place / "all.csv", ["sex", "y", "z"], rows, quoting=csv.QUOTE_ALL)
    assert read(place, **FIXED, missing="mean").feature_names[:2] == ("sex=m", "sex=missing")


# --- files that are left out ----------------------------------------------------------------------


def test_tables_are_read_as_a_user_sees_them(place, tmp_path, caplog):
    rows = [[n, "ab"[n % 2]] for n in range(8)]
    for name, delimiter in (
        ("bern.csv", ","),
        ("CHUR.CSV", ","),
        ("lugano.tsv", "\t"),
        ("sion/part.csv", ","),
        ("._bern.csv", ","),
        (".cache/a.csv", ","),
    ):
        table(place / name, ["x", "y", "by"], [[*row, name] for row in rows], delimiter)
    table(tmp_path / "other/geneva.csv", ["x", "y", "by"], [[*row, "geneva"] for row in rows])
    (place / "linked").symlink_to(tmp_path / "other")
    (place / "loop").symlink_to(place)
    for name in ("notes.txt", "more.TXT", "old.xlsx", "about.json"):
        (place / name).write_text("{}")
    data = read(place, **FIXED, client_column="by")
    names = {"bern.csv", "CHUR.CSV", "lugano.tsv", "sion/part.csv", "geneva"}
    assert set(data.client_names) == names
    assert "files that are not read: 1 of .TXT, 1 of .json, 1 of .txt, 1 of .xlsx; such as" in said(
        caplog
    )


def test_images_are_read_as_a_user_sees_them(place, tmp_path, caplog):
    for n in range(4):
        picture(place / f"cat/{n}.{('png', 'PNG', 'jfif', 'Jpg')[n]}")
        picture(tmp_path / f"store/{n}.png")
    (place / "dog").symlink_to(tmp_path / "store")
    (place / "cat/about.heic").write_bytes(b"x")
    data = read(place, "image_folder", client_folders=False)
    assert data.class_names == ("cat", "dog")
    assert len(data.train.labels) + len(data.test.labels) == 8
    assert "files that are not read: 1 of .heic; such as cat/about.heic" in said(caplog)
    given = {"data": {"image_folder": {"folder": "mine", "client_folders": True}}}
    (tmp_path / "mine2").mkdir()
    shutil.move(place, tmp_path / "mine2/Bern")
    (tmp_path / "mine2").rename(place)
    assert count_clients(validate(DataOption, given, "").data, tmp_path) == 1


# --- limits of a library --------------------------------------------------------------------------


def test_rows_and_values_may_be_longer_than_a_block(place, monkeypatch):
    monkeypatch.setattr("fedstage.data.text_files._BLOCK", 1000)
    long = "word " * 2000
    table(place / "all.csv", ["text", "y"], [[f"{long}{n}", "ab"[n % 2]] for n in range(6)])
    data = read(place, "texts", label="y", test_fraction=0.5)
    assert len(data.train.labels) + len(data.test.labels) == 6
    header = [f"e{n}" for n in range(3000)]
    rows = [[*np.arange(n, 3000 + n), "ab"[n % 2]] for n in range(6)]
    table(place / "all.csv", [*header, "y"], rows)
    assert len(read(place, label="y", test_fraction=0.5).feature_names) == 3000


def test_the_kind_of_a_column_follows_from_all_blocks(place, monkeypatch):
    monkeypatch.setattr("fedstage.data.text_files._BLOCK", 100)
    rows = [["01" if n == 90 else n % 7, "ab"[n % 2], n] for n in range(99)]
    table(place / "all.csv", ["code", "y", "x"], rows)
    data = read(place, **FIXED, client_column="code")
    assert set(data.client_names) == {"01", *map(str, range(7))}
    with pytest.raises(FedstageError, match="row 92: code = '01': numbers with leading zeros"):
        read(place, **FIXED)


# --- units and invisible letters ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("12 mg", "7 mg", "1.5 mg"), "numbers with a unit or sign"),
        (("120 mm Hg", "95 mm Hg", "80 mm Hg"), "numbers with a unit or sign"),
        (("5 ft 11 in", "1h 30m", "3 years old"), "numbers with a unit or sign"),
        (("R$ 12", "US$12", "Rs. 500"), "numbers with a unit or sign"),
        (("12%", "7 %", "0.5%"), "numbers with a unit or sign"),
        (("$12", "€7", "<5"), "numbers with a unit or sign"),
        (("0,5 kg", "1,5 kg", "12 kg"), "numbers with a unit or sign"),
        (("120/80", "130/85", "90/60"), "two numbers"),
        (("20-29", "30-39", "40 - 49"), "two numbers"),
    ],
)
def test_categories_that_look_like_numbers_are_said_once_for_each_kind(place, caplog, values, kind):
    rows = [[*row, row[2]] for row in numbered(values)]
    table(place / "all.csv", ["x", "y", "dose", "weight"], rows)
    assert len(read(place, **FIXED).feature_names) == 7
    told = f"2 columns have categories that are {kind}: dose = '{values[0]}', weight = "
    assert [line for line in caplog.messages if kind in line and told in line]
    caplog.clear()
    read(place, **FIXED, categorical=["dose", "weight"])
    assert kind not in said(caplog)


def test_numbers_that_a_file_holds_as_texts_are_said(place, caplog):
    columns = {"x": range(12), "y": ["a", "b"] * 6, "v": [str(n % 7) for n in range(12)]}
    pq.write_table(pa.table({key: list(own) for key, own in columns.items()}), place / "a.parquet")
    assert len(read(place, **FIXED).feature_names) > 2
    assert "categories that are numbers written as texts: v = '0'" in said(caplog)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (("\u22125", "3", "\u22121"), "a minus or digit that is not ASCII"),
        (("\u20135", "\u20131", "\u20132"), "a minus or digit that is not ASCII"),
        (("１２", "３", "４"), "a minus or digit that is not ASCII"),
        (("1 200", "3 400", "12"), "spaces in a number"),
        (("1.200,5", "3,5", "12"), "a comma in a number"),
        (("2020-01-31", "2021-02-01", "2022-12-12"), "a date"),
        (("31.01.2020", "1.2.2021", "12.12.2022"), "a date"),
        (("5 mai 2020", "12 août 2020", "1 juin 2021"), "a date"),
    ],
)
def test_what_is_certainly_a_number_or_date_is_refused(place, values, fault):
    table(place / "all.csv", ["x", "y", "dose"], numbered(values))
    with pytest.raises(FedstageError, match=f"dose = .*: {fault}.*data.categorical"):
        read(place, **FIXED)
    assert len(read(place, **FIXED, categorical=["dose"]).feature_names) == 4


FORMS = [unicodedata.normalize(form, "São Paulo") for form in ("NFC", "NFD")]


def test_names_in_two_forms_of_unicode_are_one_and_said(place, caplog):
    table(place / "all.csv", ["x", "y", "by"], numbered([*FORMS, "Bern"]))
    assert read(place, **FIXED, client_column="by").client_names == ("Bern", FORMS[0])
    assert "data.client_column = 'by': in several Unicode forms, read as one: 'São Paulo'" in said(
        caplog
    )


def test_folders_in_two_forms_of_unicode_are_one_client(place, caplog):
    for form in FORMS:
        for kind in ("cat", "dog"):
            for n in range(3):
                picture(place / f"{form}/{kind}/{n}.png", n)
    data = read(place, "image_folder", client_folders=True)
    assert data.client_names == (FORMS[0],)
    assert "clients: in several Unicode forms, read as one: 'São Paulo'" in said(caplog)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("Bern", one) for one in ("Bern\u200b", "Be\u00adrn", "BERN ", "Ｂern", "\u0412ern")),
        *(("Bern", one) for one in ("Be\ufe0frn", "'Bern'", ' "Bern"', "B ern")),
        ("4711", "000000000000004711"), ("P1", "P001"), ("Clinic 1", "clinic 01"), ("0x", "00x"),
        ("izmir", "\u0130zmir"), ("A-1", "A\u20131"), ("x-0", "x-00"),
    ],
)  # fmt: skip
def test_names_that_look_alike_are_said(place, caplog, one, other):
    table(place / "all.csv", ["x", "y", "by"], numbered([one, other]))
    assert len(read(place, **FIXED, client_column="by").client_names) == 2
    assert (
        "clients whose names differ only in case, spaces, quotes, invisible letters, alphabets or "
        "zeros" in said(caplog)
    )


# --- splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "read_in"),
    [
        (("train", "val", "test"), ("train", "test")),
        (("Train", "Validation", "TEST"), ("Train", "TEST")),
        (("training", "valid"), ("training", "valid")),
        (("train", "dev"), ("train", "dev")),
    ],
)
def test_folders_of_splits_are_splits(place, caplog, names, read_in):
    for part, count in zip(names, (4, 3, 2), strict=False):
        for kind in ("cat", "dog"):
            for n in range(count):
                picture(place / f"{part}/{kind}/{n}.png", n)
    data = read(place, "image_folder")
    counts = dict(zip(names, (8, 6, 4), strict=False))
    assert [len(data.train.labels), len(data.test.labels)] == [counts[part] for part in read_in]
    assert ("files that are not read: 6 of .png" in said(caplog)) == (len(names) == 3)
    with pytest.raises(FedstageError) as caught:
        read(place, "image_folder", client_folders=True)
    assert "client_folders = true" not in str(caught.value)


@pytest.mark.parametrize("split", ["train", "Test", "VAL"])
def test_a_folder_named_as_a_split_is_no_client(place, split):
    for part in (split, "Bern"):
        for n in range(4):
            picture(place / f"{part}/{'cat' if n % 2 else 'dog'}/{n}.png")
    with pytest.raises(FedstageError, match=f"{split}.: {split!r} names a split|{split!r} names"):
        read(place, "image_folder", client_folders=True)
    with pytest.raises(FedstageError) as caught:
        read(place, "image_folder")
    assert (
        f"cat/1.png: must be CLASS/FILE below {place}, and so must 7 more\n" in f"{caught.value}\n"
    )


@pytest.mark.parametrize("form", ["{}_set", "My {}", "{}2017"])
def test_a_hint_never_makes_clients_of_splits(place, form):
    for part in ("Train", "test"):
        for n in range(4):
            picture(place / f"{form.format(part)}/{'cat' if n % 2 else 'dog'}/{n}.png", n)
    with pytest.raises(FedstageError, match=r"and so must 7 more") as caught:
        read(place, "image_folder")
    assert "client_folders" not in str(caught.value)
    with pytest.raises(FedstageError, match=r"names a split, not a client"):
        read(place, "image_folder", client_folders=True)


@pytest.mark.parametrize("form", ["patients_{}.csv", "X_{}.csv", "a/2020-{}-01.csv"])
def test_a_word_of_a_name_is_a_split(place, form):
    for part, count in (("train", 8), ("test", 4)):
        rows = [[n, "ab"[n % 2]] for n in range(count)]
        table(place / form.format(part), ["x", "y"], rows)
    data = read(place, label="y")
    assert (len(data.train.labels), len(data.test.labels)) == (8, 4)
    with pytest.raises(FedstageError, match="is there; leave out the fraction"):
        read(place, **FIXED)


@pytest.mark.parametrize("names", [("train", "test"), ("Train", "val"), ("training", "dev")])
def test_a_column_of_splits_is_said(place, caplog, names):
    table(place / "all.csv", ["x", "y", "part"], numbered(names))
    read(place, **FIXED)
    assert "if these are splits, put the rows into a file for each" in said(caplog)


def test_a_column_of_splits_has_no_clients(place):
    table(place / "all.csv", ["x", "y", "by"], numbered(["train", "Test", "val"]))
    with pytest.raises(FedstageError, match="are splits, and no clients"):
        read(place, **FIXED, client_column="by")


# --- layouts --------------------------------------------------------------------------------------


def encoded(place, name, labels):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = []
    for n in range(len(labels)):
        picture(place.parent / "one.png", n)
        rows.append({"bytes": (place.parent / "one.png").read_bytes(), "path": None})
    (place / name).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"image": pa.array(rows, kind), "label": labels}), place / name)


@pytest.mark.parametrize(
    "names",
    [("data/train-0.parquet", "data/test-0.parquet"), ("train.parquet", "validation.parquet")],
)
def test_images_in_parquet_lie_as_on_the_hub(place, names):
    for name, labels in zip(names, (["a", "b"] * 3, ["b", "a"]), strict=True):
        encoded(place, name, labels)
    data = read(place, "parquet")
    assert data.class_names == ("a", "b")
    assert (len(data.train.labels), len(data.test.labels)) == (6, 2)


def test_images_in_parquet_may_have_a_training_split_alone(place):
    encoded(place, "data/train-0.parquet", [0, 1] * 4)
    with pytest.raises(FedstageError, match=r"set data\.test_fraction"):
        read(place, "parquet")
    data = read(place, "parquet", test_fraction=0.25)
    assert (len(data.train.labels), len(data.test.labels)) == (6, 2)
    assert sorted(torch.cat([data.train.images, data.test.images])[:, 0, 0, 0]) == list(range(8))


def test_leaf_is_a_table_of_users(place):
    for part, count in (("train", 4), ("test", 2)):
        own = {user: {"x": [[n, 2.5 * n] for n in range(count)], "y": [0, 1] * (count // 2)}
               for user in ("ann", "bob")}  # fmt: skip
        (place / part).mkdir()
        leaf = {"users": ["ann", "bob"], "num_samples": [count] * 2, "user_data": own}
        (place / part / "all_data.json").write_text(json.dumps(leaf))
    data = read(place, label="y", client_column="user")
    assert data.client_names == ("ann", "bob")
    assert data.feature_names == ("x0", "x1")
    assert (len(data.train.labels), data.test.clients.tolist()) == (8, [0, 0, 1, 1])


@pytest.mark.parametrize("kind", ["table", "image_folder", "parquet"])
def test_classes_that_cannot_be_tested_are_known_before(place, kind):
    for part, classes in (("train", ["a", "b", "rare"]), ("test", ["a", "b"])):
        if kind == "table":
            table(
                place / f"{part}.csv", ["x", "label"], [[n, one] for n, one in enumerate(classes)]
            )
        elif kind == "parquet":
            encoded(place, f"{part}.parquet", classes)
        else:
            for one in classes:
                picture(place / part / one / "0.png")
    data = validate(DataOption, {"data": {kind: {"folder": "mine"}}}, "").data
    with pytest.raises(FedstageError, match=r"no test sample of data = .* is of class rare;"):
        check_tested(data, place.parent)
    check_tested(data, None)
    divided = data.model_copy(update={"division": (1, 0, 1)})
    check_tested(divided, place.parent)


# --- groups and duplicates ------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.2, 0.5])
def test_a_group_is_for_training_or_for_testing(place, fraction):
    rows = [[n, "ab"[n // 4 % 2], f"p{n // 4}", "cd"[n // 4 % 3 > 0]] for n in range(160)]
    table(place / "all.csv", ["x", "y", "patient", "by"], rows)
    keys = {"label": "y", "client_column": "by", "test_fraction": fraction}
    split = read(place, **keys, group_column="patient", features=["x"])
    assert len(split.test.labels) == 160 * fraction
    assert torch.bincount(split.test.labels).min() > 0
    values = torch.cat([split.train.images, split.test.images])[:, 0]
    order = values.argsort().argsort()
    tested = {n // 4 for n in order[len(split.train.labels) :].tolist()}
    assert not tested & {n // 4 for n in order[: len(split.train.labels)].tolist()}


def test_groups_that_files_split_are_said(place, caplog):
    for part, patients in (("train", "pqr"), ("test", "rst")):
        rows = [[n, "ab"[n % 2], patient] for n, patient in enumerate(patients * 2)]
        table(place / f"{part}.csv", ["x", "y", "patient"], rows)
    assert read(place, label="y", group_column="patient").feature_names == ("x",)
    assert "1 groups have training and test samples: 'r'" in said(caplog)


def test_duplicates_between_training_and_test_are_counted(place, caplog):
    table(place / "train.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(10)])
    table(place / "test.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in (3, 7, 11)])
    read(place, label="y")
    assert "2 of 3 test samples are also training samples" in said(caplog)


# --- everything at once ---------------------------------------------------------------------------


def test_all_faults_are_told_at_once(place, capsys):
    table(
        place / "bern.csv", ["age", "dose", "y"], [[1, "1,5", "a"], [2, "2,5", "b"], ["x", 3, ""]]
    )
    table(place / "chur.csv", ["age", "dose", "y"], [[1, 1, "a"], [2, "", "b"], [4, 3, "a"]])
    table(place / "sion.csv", ["age", "y"], [[1, "a"]])
    (place / "notes.txt").write_text("x")
    assert main(["check-data", str(place), "--settings", "{label: y}"]) == 1
    *faults, last = capsys.readouterr().err.splitlines()
    told = "\n".join(faults)
    for fault in ("set data.test_fraction", "bern.csv: row 4: y: missing",
                  "sion.csv: column 'dose': not in both", "not read: 1 of .txt"):  # fmt: skip
        assert fault in told
    assert last == (
        "fedstage check-data: settings: data: {table: {folder: mine, label: y, test_fraction: 0.2}}"
    )
    table(place / "sion.csv", ["age", "dose", "y"], [[1, 1, "a"]])
    assert main(["check-data", str(place), "--settings", "{label: y}"]) == 1
    told = capsys.readouterr().err
    for fault in ("age = 'x': a text among numbers", "dose = '1,5': a comma", "row 4: y: missing"):
        assert fault in told
    given = yaml.safe_load(last.partition("settings: ")[2])
    assert validate(DataOption, given, "").data.test_fraction == 0.2


def test_headers_without_a_name_or_with_spaces_are_said(place, caplog):
    header = ["", " age", "y", "Unnamed: 0"]
    table(place / "all.csv", header, [[n, n % 5, "ab"[n % 2], n] for n in range(12)])
    assert read(place, **FIXED).feature_names == ("", " age", "Unnamed: 0")
    told = "columns without a name, or with spaces around it: '', ' age', 'Unnamed: 0'"
    assert told in said(caplog)


def test_a_separator_at_the_end_of_all_rows_is_no_column(place, caplog):
    table(place / "all.csv", ["x", "y", ""], [[n, "ab"[n % 2], ""] for n in range(12)])
    assert read(place, **FIXED).feature_names == ("x",)
    assert "all.csv: a column without name and values is left out" in said(caplog)


@pytest.mark.parametrize("depth", ["RGB;16", "plain RGB;16", "I;16"])
def test_deep_images_are_refused(place, depth):
    for kind in ("cat", "dog"):
        for n in range(3):
            picture(place / f"{kind}/{n}.png")
    pixels = np.zeros((8, 8), np.uint16)
    if depth == "I;16":
        Image.fromarray(pixels).save(place / "cat/0.png")
    else:
        (place / "cat/0.png").unlink()
        is_plain = depth.startswith("plain")
        pixels = b"P3 8 8 4095\n" + b"9 " * 192 if is_plain else b"P6 8 8 4095\n" + bytes(8 * 8 * 6)
        (place / "cat/0.ppm").write_bytes(pixels)
    with pytest.raises(FedstageError, match="must have 8 bits a channel"):
        read(place, "image_folder")


def tiff(planes, bits=8, planar=1, samples=3, sample_format=1):
    """Return an uncompressed TIFF of 8 x 8 pixels, which Pillow cannot write in all these forms."""
    tags = {256: [8], 257: [8], 258: [bits] * samples, 259: [1],
            262: [1 + (samples > 1)], 277: [samples],
            278: [8], 284: [planar],
            339: [sample_format] * samples}  # fmt: skip
    tags |= {338: [0] * (samples - 3)} if samples > 3 else {}
    tags |= {273: [0] * len(planes), 279: [len(plane) for plane in planes]}
    long = (273, 279)
    end = 8 + 2 + 12 * len(tags) + 4
    place = end + sum(len(v) * (4 if tag in long else 2) for tag, v in tags.items()
                      if len(v) * (4 if tag in long else 2) > 4)  # fmt: skip
    tags[273] = [place + sum(map(len, planes[:n])) for n in range(len(planes))]
    head, more = struct.pack("<H", len(tags)), b""
    for tag, values in sorted(tags.items()):
        kind, letter = (4, "I") if tag in long else (3, "H")
        raw = struct.pack(f"<{len(values)}{letter}", *values)
        head += struct.pack("<HHI", tag, kind, len(values))
        if len(raw) > 4:
            head += struct.pack("<I", end + len(more))
            more += raw
        else:
            head += raw.ljust(4, b"\0")
    return b"II*\0" + struct.pack("<I", 8) + head + bytes(4) + more + b"".join(planes)


def test_tiffs_of_deep_planes_are_refused_and_further_bands_said(place, caplog):
    for kind in ("cat", "dog"):
        for n in range(5):
            picture(place / f"{kind}/{n}.png", n)
    own = place / "cat/9.tif"
    own.write_bytes(tiff([bytes(8 * 8 * 2)] * 3, bits=16, planar=2))
    with pytest.raises(FedstageError, match="must have 8 bits a channel"):
        read(place, "image_folder")
    own.write_bytes(tiff([bytes([1, 2, 3, 4, 5]) * 64], samples=5))
    read(place, "image_folder")
    assert "1 image: further bands left out" in said(caplog)
    own.write_bytes(tiff([bytes(8 * 8)], samples=1, sample_format=2))
    with pytest.raises(FedstageError, match="numbers with a sign"):
        read(place, "image_folder")


# --- stray quotes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{"drop": ["note"]}, {"features": ["x"]}, {"name": "texts"}])
@pytest.mark.parametrize("note", ['"He said', '"'])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_rows_behind_a_stray_quote_are_not_lost(place, keys, note, suffix):
    separator = {"csv": ",", "tsv": "\t"}[suffix]
    rows = [[str(n), "fine", "ab"[n % 2]] for n in range(20)]
    rows[2][1], rows[9][1] = note, 'of 5" length'
    lines = [separator.join(row) for row in [["x", "note", "y"], *rows]]
    (place / f"all.{suffix}").write_text("\n".join(lines))
    keys = {"text": "note"} | keys if "name" in keys else keys
    with pytest.raises(FedstageError, match=r"rows in a value|a quote within a value in quotes"):
        read(place, **FIXED | keys)


def test_a_quote_that_ends_within_the_next_row_is_found(place):
    rows = "".join(f"{n} good,a\n{n} bad,b\n" for n in range(8))
    (place / "all.csv").write_text(f't,y\n{rows}"two,b\nthree "or so",a\n{rows}')
    with pytest.raises(FedstageError, match="rows in a value; delete its quotes"):
        read(place, "texts", **FIXED, text="t")


def test_texts_of_several_lines_are_texts(place):
    rows = [[f'Dear {n},\nall is well\n, and 5" long', "ab"[n % 2]] for n in range(20)]
    table(place / "all.csv", ["t", "y"], rows)
    data = read(place, "texts", **FIXED, text="t")
    assert len(data.train.labels) + len(data.test.labels) == 20


# --- words and vocabularies -----------------------------------------------------------------------


def test_long_words_have_pieces_and_unknown_pieces_are_said(place, caplog):
    letters = np.random.default_rng(0).choice(list("ACGT"), (20, 150))
    table(place / "all.csv", ["t", "y"], [["".join(r), "ab"[n % 2]] for n, r in enumerate(letters)])
    data = read(place, "texts", **FIXED, text="t", length=200)
    assert (data.test.images != 0).sum(1).tolist() == [152] * 2
    assert not said(caplog)
    (place.parent / "v.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "acgt"]))
    read(place, "texts", **FIXED, text="t", vocabulary="v.txt")
    assert "100.0 % of the pieces of 18 texts are unknown, [UNK], and half of 18 texts" in said(
        caplog
    )


def test_a_line_of_a_vocabulary_is_a_piece(place):
    """Also a line separator, as in BERT's Chinese vocabulary."""
    (place.parent / "v.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2028", "good", "bad"]), "utf-8"
    )
    table(place / "all.csv", ["t", "y"], [["good", "a"], ["bad", "b"]] * 5)
    data = read(place, "texts", **FIXED, text="t", vocabulary="v.txt", length=4)
    assert set(data.train.images[:, 1].tolist()) == {5, 6}


# --- columns that look like others ----------------------------------------------------------------


@pytest.mark.parametrize("mark", [".", "-", "n/a", "not done", "#DIV/0!"])
def test_a_mark_in_most_rows_of_numbers_is_refused(place, mark):
    rows = [[f"{n}.5" if n % 4 == 0 else mark, "ab"[n % 2]] for n in range(40)]
    table(place / "all.csv", ["lab", "y"], rows)
    with pytest.raises(FedstageError, match=r"lab = .*: a text among numbers"):
        read(place, **FIXED)


@pytest.mark.parametrize("values", [["1.0", "2.0"], [1.5, 2.0], [1.0, None]])
def test_categories_are_no_fractions(place, values):
    rows = numbered(values)
    if isinstance(values[0], str):
        table(place / "all.csv", ["x", "y", "stage"], rows)
    else:
        columns = dict(zip(["x", "y", "stage"], map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), place / "all.parquet")
    with pytest.raises(FedstageError, match=r"'stage'.* double"):
        read(place, **FIXED, categorical=["stage"])


def test_the_index_of_pandas_is_no_feature(place, caplog):
    frame = {"x": [*range(20)], "y": ["a", "b"] * 10, "__index_level_0__": [*range(20)]}
    pq.write_table(pa.table(frame), place / "all.parquet")
    assert read(place, **FIXED).feature_names == ("x",)
    assert "the index of pandas is left out: __index_level_0__" in said(caplog)


def test_groups_that_look_alike_are_said(place, caplog):
    rows = [[n, "ab"[n % 2], "pP"[n % 2] + str(n // 4)] for n in range(40)]
    table(place / "all.csv", ["x", "y", "patient"], rows)
    read(place, **FIXED, group_column="patient", features=["x"])
    assert "groups whose names differ only in case" in said(caplog)


def test_a_client_of_one_group_stays(place):
    """Although the group, which another client's row begins, is drawn for testing."""
    for lone in range(10):
        rows = [[n, "ab"[n // 4 % 2], n // 4, "B" if n == 4 * lone + 1 else "A"] for n in range(40)]
        table(place / "all.csv", ["x", "y", "patient", "by"], rows)
        keys = {"group_column": "patient", "client_column": "by", "features": ["x"]}
        data = read(place, label="y", test_fraction=0.25, **keys)
        assert data.client_names == ("A", "B")


# --- files that are not read, or not as they say --------------------------------------------------


@pytest.mark.parametrize(
    "folders",
    [
        ("train_set", "test_set"),
        ("Training data", "X_Test"),
        ("test-retest/train", "test-retest/test"),
    ],
)
def test_a_word_of_a_folder_is_a_split(place, folders):
    for folder, count in zip(folders, (8, 4), strict=True):
        table(place / folder / "a.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(count)])
    data = read(place, label="y")
    assert (len(data.train.labels), len(data.test.labels)) == (8, 4)


@pytest.mark.parametrize("name", ["testosterone.csv", "trainees.csv", "evaluator.csv"])
def test_another_word_is_no_split(place, name):
    table(place / name, ["x", "y"], [[n, "ab"[n % 2]] for n in range(20)])
    assert len(read(place, **FIXED).test.labels) == 2


def test_shards_that_are_not_there_are_said(place, caplog):
    for n in (0, 2):
        table(place / f"train-0000{n}-of-00003.csv", ["x", "y", "z"], numbered("ab"))
    table(place / "test.csv", ["x", "y", "z"], numbered("ab"))
    read(place, label="y")
    assert "train-of-00003: 2 files of 3 are there" in said(caplog)


def leaf(place, users=("a", "b"), stated=4, more=""):
    x = [[n] for n in range(4)]
    data = ", ".join(f'"{user}": {{"x": {x}, "y": [0, 1, 0, 1{more}]}}' for user in users)
    counts = f'"num_samples": {[stated] * 2}, "user_data": {{{data}}}'
    (place / "train.json").write_text(f'{{{counts}, "users": ["a", "b"]}}')


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"stated": 3}, "user 'a': 4 x, 4 y and num_samples = 3"),
        ({"more": ", 1"}, "user 'a': 4 x, 5 y and num_samples = 4"),
        ({"users": ("a",)}, "user 'b': 0 x, 0 y and num_samples = 4"),
        ({"users": ("a", "b", "a")}, "a is there 2 times"),
        ({"users": ("a", "b", "b")}, "b is there 2 times"),
        ({"more": ", 1" + "0" * 30}, "."),
    ],
)
def test_leaf_has_the_samples_that_it_states(place, changes, fault):
    leaf(place, **changes)
    with pytest.raises(FedstageError, match=fault):
        read(place, label="y", client_column="user", test_fraction=0.5)
    leaf(place)
    assert len(read(place, label="y", client_column="user", test_fraction=0.5).train.labels) == 4


def test_a_folder_that_cannot_be_read_is_refused(place, monkeypatch):
    for kind in ("cat", "dog", "owl"):
        for n in range(3):
            picture(place / f"{kind}/{n}.png")
    scandir = os.scandir

    def denied(path):
        if str(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(FedstageError, match="dog: Permission denied"):
        read(place, "image_folder")


@pytest.mark.parametrize("name", [" ", "\u00a0", b"Z\xfcrich".decode("utf-8", "surrogateescape")])
def test_folders_have_names(place, name):
    for kind in ("cat", name):
        for n in range(3):
            picture(place / f"{kind}/{n}.png")
    with pytest.raises(FedstageError, match="the name of a folder must be"):
        read(place, "image_folder")


def test_a_missing_client_is_known_before(place):
    rows = [[n, "ab"[n % 2], "AB"[n % 2] if n else ""] for n in range(20)]
    table(place / "all.csv", ["x", "y", "by"], rows)
    given = {"folder": "mine", **FIXED, "client_column": "by"}
    data = validate(DataOption, {"data": {"table": given}}, "").data
    with pytest.raises(FedstageError, match="row 2: by: missing"):
        count_clients(data, place.parent)


def test_check_data_is_of_the_folder_that_is_named(place, monkeypatch, capsys):
    for folder, count in ((place, 10), (place.parent / "elsewhere/v2", 20)):
        table(folder / "all.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(count)])
    (place.parent / "sub").mkdir()
    (place.parent / "sub/mine").symlink_to(place.parent / "elsewhere/v2")
    settings = ["--settings", "{label: y, test_fraction: 0.5}"]
    main(["check-data", str(place.parent / "sub/mine"), *settings])
    assert "10 for training, 10 for testing" in capsys.readouterr().out
    monkeypatch.chdir(place)
    main(["check-data", ".", *settings])
    assert "5 for training, 5 for testing" in capsys.readouterr().out


def test_a_long_text_is_no_number(place):
    """Nor does it take time to see that."""
    rows = [["1" * 30_000 + "N" if n else "x", "ab"[n % 2]] for n in range(20)]
    table(place / "all.csv", ["g", "y"], rows)
    assert len(read(place, **FIXED).feature_names) == 2


# --- what is lost between files, parts and rows ---------------------------------------------------


def named_integers(path, numbers, names, column="by"):
    metadata = {"huggingface": json.dumps({"info": {"features": {column: {"names": names}}}})}
    rows = {"x": list(range(len(numbers))), "y": ["a", "b"] * (len(numbers) // 2), "by": numbers}
    pq.write_table(pa.table(rows).replace_schema_metadata(metadata), path)


def test_integers_have_the_names_of_their_own_file(place):
    named_integers(place / "train-a.parquet", [0, 1] * 6, ["Bern", "Chur"])
    named_integers(place / "train-b.parquet", [0, 1] * 6, ["Geneva", "Bern"])
    data = read(place, test_fraction=0.2, label="y", client_column="by")
    assert data.client_names == ("Bern", "Chur", "Geneva")
    given = {"data": {"table": {"folder": "mine", "client_column": "by", **FIXED}}}
    assert count_clients(validate(DataOption, given, "").data, place.parent) == 3
    named_integers(place / "train-b.parquet", [0, 2] * 6, ["Geneva", "Bern"])
    with pytest.raises(FedstageError, match=r"row 1: by = 2: must be 0\.\.1"):
        read(place, test_fraction=0.2, label="y", client_column="by")


@pytest.mark.parametrize(
    ("header", "two", "suffix"),
    [
        ("t\ty", '"I do not know,\ta\nhe said, but wait."\tb', "tsv"),
        ("id,t,y", '9,"I do not know,a\n10,he said wait.",b', "csv"),
        ("x,t,y", '9,"fine,a\n10,good",b', "csv"),
        ("t,y,id", '"great,a,only\nbad",b,9', "csv"),
        ("y,id,x,t", 'a,9,9,"oh no\n,,10,no"', "csv"),
    ],
)
def test_two_rows_that_become_one_are_found(place, header, two, suffix):
    separator = "\t" if suffix == "tsv" else ","
    fields = {"t": "plain {}", "y": "{ab}", "id": "{}", "x": "{}"}
    form = separator.join(fields[name] for name in header.split(separator))
    rows = [form.format(*[n % 7] * 3, ab="ab"[n % 2]) for n in range(20)]
    (place / f"all.{suffix}").write_text("\n".join([header, *rows[:9], two, *rows[9:]]))
    with pytest.raises(FedstageError, match="rows in a value; delete its quotes"):
        read(place, "texts", **FIXED, text="t")


@pytest.mark.parametrize("text", ['"He said \\"no\\" {}"', '"Bob "Bo" S. {}"', '"Yes" she said {}'])
def test_quotes_within_quotes_are_refused(place, text):
    rows = "".join(f"{text.format(n)},{'ab'[n % 2]}\n" for n in range(12))
    (place / "all.csv").write_text("t,y\n" + rows)
    with pytest.raises(FedstageError, match="line 2: a quote within a value in quotes"):
        read(place, "texts", **FIXED, text="t")


@pytest.mark.parametrize("text", ['5" pipe {}', '"He said ""no"" {}"'])
def test_other_quotes_are_read(place, text):
    rows = "".join(f"{text.format(n)},{'ab'[n % 2]}\n" for n in range(12))
    (place / "all.csv").write_text("t,y\n" + rows)
    assert len(read(place, "texts", **FIXED, text="t").train.labels) > 8


def test_an_empty_line_before_the_header_is_left_out(place):
    table(place / "all.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(12)])
    (place / "all.csv").write_text("\n\n" + (place / "all.csv").read_text())
    assert read(place, **FIXED).feature_names == ("x",)


@pytest.mark.parametrize(("cell", "fault"), [("z", "row 14"), ("1,2", "row 14: has 3 fields")])
def test_rows_are_counted_with_empty_ones(place, cell, fault):
    rows = "".join(f"{n},{'ab'[n % 2]}\n\n" for n in range(6))
    (place / "all.csv").write_text(f"x,y\n{rows}{cell},a\n{rows}")
    with pytest.raises(FedstageError, match=fault):
        read(place, **FIXED)


def test_values_that_no_training_row_has_and_filled_ones_are_said(place, caplog):
    table(place / "train.csv", ["x", "sex", "y"], [[n, "MF"[n % 2], "ab"[n % 2]] for n in range(8)])
    rows = [["", ["male", "female"][n % 2], "ab"[n % 2]] for n in range(4)]
    table(place / "test.csv", ["x", "sex", "y"], rows)
    read(place, label="y", missing="mean")
    told = "column 'sex': 4 rows have no category, as no training row has: 'female', 'male'"
    assert told in said(caplog)
    assert "missing values that are filled: x (4 rows)" in said(caplog)


def test_test_samples_of_other_clients_are_said(place, caplog):
    for name, owners in (("train", ["Bern", "Chur"]), ("test", ["bern", "Bern"])):
        rows = [[n, "ab"[n // 2 % 2], owners[n % 2]] for n in range(12)]
        table(place / f"{name}.csv", ["x", "y", "by"], rows)
    read(place, label="y", client_column="by")
    assert "6 test samples are of clients without training samples: 'bern'" in said(caplog)
    assert "alphabets or zeros: 'Bern', 'bern'" in said(caplog)


def test_copies_and_samples_with_several_labels_are_said(place, caplog):
    rows = [[n, "ab"[n % 2]] for n in range(12)]
    for name in ("train.csv", "train (1).csv"):
        table(place / name, ["x", "y"], rows)
    table(place / "test.csv", ["x", "y"], [[n + 0.5, "ab"[n % 2]] for n in range(4)])
    read(place, label="y")
    assert "12 of 24 training samples are copies of others" in caplog.messages
    table(place / "train (1).csv", ["x", "y"], [[n, "ab"[n % 3 % 2]] for n in range(12)])
    read(place, label="y")
    told = "12 of 24 training samples are copies of others; samples with several labels: 6"
    assert told in caplog.messages


@pytest.mark.parametrize("name", ["train_test_split", "training data"])
def test_a_files_own_name_counts_more_than_its_folders(place, name):
    for split, count in (("train", 8), ("test", 4)):
        rows = [[n, "ab"[n % 2]] for n in range(count)]
        table(place / name / f"{split}.csv", ["x", "y"], rows)
    data = read(place, label="y")
    assert (len(data.train.labels), len(data.test.labels)) == (8, 4)


def test_splits_are_words_of_names_in_camel_case(place):
    for split, count in (("KDDTrain+", 8), ("KDDTest+", 4)):
        table(place / f"{split}.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(count)])
    assert len(read(place, label="y").train.labels) == 8
    shutil.rmtree(place)
    for folder in ("TrainImages", "TestImages"):
        for label in ("cat", "dog"):
            picture(place / folder / label / "1.png")
    with pytest.raises(FedstageError) as error:
        read(place, "image_folder")
    assert "client_folders" not in str(error.value)


def test_a_file_with_a_word_by_chance_has_a_way_out(place):
    table(place / "blood_test.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(12)])
    with pytest.raises(FedstageError, match=r"rename blood_test\.csv if it is for training"):
        read(place, label="y")


def test_folders_with_values_and_delta_tables_are_not_read_as_they_are(place, caplog):
    for sex in "mf":
        table(place / f"sex={sex}" / "a.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(8)])
    read(place, **FIXED)
    assert "folders name columns that are not read: sex=f, sex=m" in said(caplog)
    for mark, kind in (("_delta_log", "Delta"), (".hoodie", "Hudi")):
        (place / mark).mkdir()
        with pytest.raises(FedstageError, match=f"a table of {kind}"):
            read(place, **FIXED)
        (place / mark).rmdir()


def test_files_in_icloud_are_counted(place, caplog):
    table(place / "a.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(12)])
    (place / ".b.csv.icloud").write_bytes(b"bplist00")
    read(place, **FIXED)
    assert "1 files are in iCloud only, such as .b.csv.icloud" in said(caplog)


@pytest.mark.parametrize(
    "values",
    [
        ("train", "test"),
        ("TRAIN", "VALIDATE", "UNASSIGNED"),
        ("Training Set", "Test Set"),
        ("train_data", "test_data"),
        ("TR", "TE"),
    ],
)
@pytest.mark.parametrize("kind", ["texts", "features", "table"])
def test_a_column_of_splits_is_said_whatever_is_read(place, caplog, values, kind):
    rows = [[f"{n}", "ab"[n % 2], values[n % len(values)]] for n in range(30)]
    rows = [[f"word {row[0]}" if kind == "texts" else row[0], *row[1:]] for row in rows]
    table(place / "all.csv", ["x", "y", "split"], rows)
    keys = {"texts": {"name": "texts", "text": "x"}, "features": {"features": ["x"]}, "table": {}}
    read(place, **FIXED | keys[kind])
    assert "if these are splits, put the rows into a file for each" in said(caplog)


def test_texts_that_are_cut_or_have_no_pieces_are_said(place, caplog):
    rows = [["word " * 200 + str(n % 3), "ab"[n % 2]] for n in range(18)]
    table(place / "all.csv", ["t", "y"], [*rows, ["\u0301", "a"], ["\ufffd", "b"]])
    read(place, "texts", **FIXED, text="t")
    assert "texts have more than data.length = 128 pieces, and are cut" in said(caplog)
    assert "0.0 % of the pieces of 18 texts are unknown, [UNK], and half of" in said(caplog)


@pytest.mark.parametrize("mark", ["nan", "None", "<NA>", "n/a", "\\N", "#REF!", "#N/A N/A", "-"])
def test_names_that_may_be_missing_values_are_said(place, caplog, mark):
    rows = [[n, "ab"[n % 2], mark if n % 5 == 0 else f"c{n % 3}"] for n in range(30)]
    x, y, by = (list(values) for values in zip(*rows, strict=True))
    pq.write_table(pa.table({"x": x, "y": y, "by": by, "to": by}), place / "all.parquet")
    read(place, **FIXED, client_column="by", missing="mean")
    assert f"clients that may be missing values: {mark!r}" in said(caplog)
    assert f"categories of 'to' that may be missing values: {mark!r}" in said(caplog)


def test_names_with_lost_letters_are_said(place, caplog):
    rows = [[n, "ab"[n % 2], ["Chur", "M\ufffdller"][n // 2 % 2]] for n in range(24)]
    table(place / "all.csv", ["x", "y", "by"], rows)
    read(place, **FIXED, client_column="by")
    assert "clients with letters that were lost before" in said(caplog)


def test_groups_in_training_and_the_servers_samples_are_said(place, caplog):
    rows = [[n, "ab"[n // 4 % 2], f"p{n // 4}"] for n in range(80)]
    table(place / "all.csv", ["x", "y", "who"], rows)
    read(place, test_fraction=0.2, label="y", group_column="who", server_validation=20)
    assert "groups have training and server samples" in said(caplog)
    assert "groups have training and test samples" not in said(caplog)


def test_tensors_that_are_not_read_are_said_and_test_samples_not_lost(place, caplog):
    from safetensors.torch import save_file

    def save(name, count, **more):
        x, y = torch.arange(count * 2.0).reshape(count, 2), torch.arange(count) % 2
        save_file({"x": x + len(name), "y": y, **more}, place / f"{name}.safetensors")

    save("train", 12, hospital=torch.arange(12) % 3)
    save("test", 8, clients=torch.arange(8))
    save("train_2", 4)
    with pytest.raises(FedstageError, match=r"test\.safetensors is there"):
        read(place, "feature_tensors", test_fraction=0.2)
    data = read(place, "feature_tensors", division=[2, 1, 1])
    assert (len(data.train.labels), len(data.test.labels), len(data.held_out)) == (10, 5, 5)
    assert "files that are not read: train_2.safetensors" in said(caplog)
    assert "tensors that are not read: hospital" in said(caplog)
    assert "test.safetensors: tensors that are not read: clients" in said(caplog)


def test_a_file_with_two_columns_of_images_is_refused(place):
    images = [{"bytes": b"x", "path": "a"}] * 4
    columns = {"img": images, "image": images, "label": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), place / "all.parquet")
    with pytest.raises(FedstageError, match="must have one column 'img' or 'image'"):
        read(place, "parquet", test_fraction=0.5)


def test_files_that_are_not_named_as_a_split_are_said_where_others_are(place, caplog):
    for name in ("train", "other"):
        table(place / f"{name}.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(12)])
    read(place, **FIXED)
    assert "for training are also files that are not named so: other.csv" in said(caplog)


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("Xtrain", "Xtest"),
        ("TRAINdata", "TESTset"),
        ("Trainingsdaten", "Testdaten"),
        ("a", "holdout"),
    ],
)
def test_words_of_splits_may_have_more_letters(place, train, test):
    for name, count in ((train, 12), (test, 5)):
        table(place / f"{name}.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(count)])
    with pytest.raises(FedstageError, match=f"test_fraction = 0.1: .*{test}.csv is there"):
        read(place, **FIXED)


@pytest.mark.parametrize("kind", ["dictionary", "large_string"])
def test_a_typed_column_of_splits_is_said(place, caplog, kind):
    column = pa.array(["train", "test"] * 6)
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(pa.large_string())
    rows = {"x": list(range(12)), "y": ["a", "b", "b"] * 4, "part": column}
    pq.write_table(pa.table(rows), place / "all.parquet")
    read(place, **FIXED)
    assert "column 'part' has 'train', 'test': if these are splits" in said(caplog)


def test_integers_of_features_have_the_names_of_their_own_file(place):
    named_integers(place / "train.parquet", [0, 1] * 6, ["m", "f"])
    named_integers(place / "test.parquet", [0, 1] * 6, ["f", "m"])
    data = read(place, label="y")
    assert data.feature_names == ("x", "by=f", "by=m")
    assert data.train.images[0, 1:].tolist() == data.test.images[1, 1:].tolist() == [0, 1]
    named_integers(place / "train.parquet", [0, 1] * 6, ["m", "m"])
    with pytest.raises(FedstageError, match="metadata of 'by': 'm' is there twice"):
        read(place, label="y")


def test_suggested_settings_have_the_folders_below_the_data_folder(place, monkeypatch, capsys):
    table(place / "deep/all.csv", ["x", "y"], [[n, "ab"[n % 2]] for n in range(12)])
    monkeypatch.setenv("FEDSTAGE_DATA", str(place))
    main(["check-data", str(place / "deep"), "--settings", "{label: y, test_fraction: 0.5}"])
    assert "folder: deep," in capsys.readouterr().out
    monkeypatch.setenv("FEDSTAGE_DATA", str(place.parent))
    main(["check-data", str(place / "deep"), "--settings", "{label: y, test_fraction: 0.5}"])
    assert "folder: mine/deep," in capsys.readouterr().out


def test_many_columns_are_read_in_a_time_that_grows_with_them(place):
    """Ten seconds and more, when each name was looked up in a list of all."""
    count = 3000
    rows = [["ab"[n % 2], *(n * k % 7 for k in range(count))] for n in range(12)]
    table(place / "all.csv", ["y", *(f"g{k}" for k in range(count))], rows)
    assert len(read(place, **FIXED).feature_names) > count / 2


def test_clients_that_lose_all_samples_are_said(place, caplog):
    rows = [[n, "ab"[n % 2], "c" if n < 20 else f"d{n}"] for n in range(24)]
    table(place / "train.csv", ["x", "y", "by"], rows)
    table(place / "test.csv", ["x", "y", "by"], rows[:2])
    data = read(place, label="y", client_column="by", train_fraction=0.5)
    lost = {f"d{n}" for n in range(20, 24)} - {*data.client_names}
    assert lost
    told = next(line for line in caplog.messages if "lose all training samples" in line)
    assert {name for name in lost if repr(name) in told} == lost


def test_classes_of_images_that_are_splits_are_said(place, caplog):
    for kind in ("cat_train", "cat_test"):
        for n in range(5):
            picture(place / f"{kind}/{n}.png", n)
    read(place, "image_folder")
    assert "classes are named as splits are: cat_test, cat_train" in said(caplog)
