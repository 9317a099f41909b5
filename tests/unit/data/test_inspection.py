"""What can be wrong with data of one's own, and the line that `fedstage check-data` says of it.

To add a case: a row of BAD.
"""

import io
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from tests.shared.settings import config, experiment, federated

from fedstage.execution.cli import main

ROWS = [("1", "2.5", "a", "Bern"), ("2", "0.5", "b", "Basel"), ("3", "1.5", "a", "Bern"),
        ("4", "3.5", "b", "Basel")]  # fmt: skip


def csv(rows=ROWS, header="age,dose,label,centre"):
    return "\n".join([header, *(",".join(row) for row in rows)]) + "\n"


TABLE = csv()
COMMAS = csv([(age, f'"{dose.replace(".", ",")}"', *more) for age, dose, *more in ROWS])
NUMBERED = [("1", "2.5", "0", "Bern"), ("2", "0.5", "1", "Basel")]


def changed(row, column, value):
    rows = [list(one) for one in ROWS]
    rows[row][column] = value
    return csv(rows)


def png(side=8, level=0):
    file = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), level, np.uint8)).save(file, "PNG")
    return file.getvalue()


def images(labels=(0, 1, 0, 1), *, encoded=None, label="label", **columns):
    """A Parquet file of images; `encoded` replaces the bytes of the images in these rows."""
    pixels = [(encoded or {}).get(row, png(level=row)) for row in range(len(labels))]
    column = [None if one is None else {"bytes": one, "path": None} for one in pixels]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({"image": pa.array(column, kind), label: labels, **columns})


def twice(table, name):
    return table.append_column(name, table.column(name))


@dataclass(frozen=True)
class Bad:
    """Files of a folder, settings of data, and what the line must contain."""

    told: tuple[str, ...]
    files: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)


def table(told, train=TABLE, test=TABLE, **settings):
    files = {"train.csv": train, "test.csv": test}
    return Bad((told,), {k: v for k, v in files.items() if v is not None}, settings)


def pictures(told, train=None, test=None, **settings):
    given = {"train.parquet": train, "test.parquet": test}
    files = {name: images() if one is None else one for name, one in given.items()}
    return Bad((told,), files, settings)


def folders(told, files, **settings):
    return Bad((told,), files, settings)


def encoded(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


CATS = {f"{kind}/{n}.png": png() for kind in ("cats", "dogs") for n in range(5)}
HOSTILE = encoded(np.zeros((13_000, 13_000), bool))

BAD = {
    # folders
    "no folder": Bad(("mine: no such folder",), None),
    "an empty folder": Bad(("mine: has no .csv, no .tsv, no .parquet, no .json and no images",)),
    "other files only": Bad(("no .json and no images",), {"notes.txt": "x"}),
    "tensors": Bad(("has tensors; name them in --settings",), {"train.safetensors": "x"}),
    "a feature twice": table("data.features: 'age' is there 2 times", features=["age", "age"]),
    # images in folders
    "images in one folder": folders("1.png: must be CLASS/FILE below", {"1.png": png()}),
    "images in folders of clients": folders(
        "if it is CLIENT/CLASS/FILE, set data.client_folders = true",
        {"Bern/cats/1.png": png(), "Bern/dogs/1.png": png()},
    ),
    "images without folders of clients": folders(
        "must be CLIENT/CLASS/FILE below", CATS, client_folders=True
    ),
    "images in folders of one class": folders(
        "are of class 'cats'", {f"cats/{n}.png": png() for n in range(9)}
    ),
    "images of two sizes in folders": folders(
        "set data.image_size to resize all", CATS | {"dogs/0.png": png(9)}
    ),
    "an image in a folder that is damaged": folders(
        "dogs/0.png: cannot decode the image", CATS | {"dogs/0.png": png()[:40]}
    ),
    "an image of 16 bits": folders(
        "0.png: cannot decode the image (mode I;16",
        CATS | {"dogs/0.png": encoded(np.zeros((8, 8), np.uint16))},
    ),
    "a hostile image": folders(
        "0.png: cannot decode the image (13000 x 13000 pixels: at most 50,000,000 are read)",
        CATS | {"dogs/0.png": HOSTILE},
        image_size=8,
    ),
    "images of a hostile size": folders(
        "data.image_size = 1000000: must be less than or equal to 4096", CATS, image_size=10**6
    ),
    "images for training alone": folders(
        "has no images in test", {f"train/{path}": content for path, content in CATS.items()}
    ),
    "images for testing alone": folders(
        "has no images in train", {f"test/{path}": content for path, content in CATS.items()}
    ),
    "a test fraction beside a folder": folders(
        "leave out the fraction",
        {f"{part}/{path}": content for path, content in CATS.items() for part in ("train", "test")},
        test_fraction=0.5,
    ),
    # texts
    "no column of texts": Bad(
        ("data.text = 'review': no such column; its columns are age",),
        {"a.csv": TABLE},
        {"text": "review", "test_fraction": 0.5},
    ),
    "texts that are missing": Bad(
        ("a.csv: row 3: text: missing",),
        {"a.csv": "text,label\nx y,a\n,b\n"},
        {"text": "text", "test_fraction": 0.5},
    ),
    "texts in Parquet that are numbers": Bad(
        ("column is int64; must be text",),
        {"a.parquet": pa.table({"text": [1, 2], "label": [1, 2]})},
        {"text": "text", "test_fraction": 0.5},
    ),
    "enormous labels of texts": Bad(
        ("column is double; labels must be texts or integers",),
        {"a.csv": "text,label\nx,1e308\ny,2\n"},
        {"text": "text", "test_fraction": 0.5},
    ),
    "no files for training": table("has no train*.csv or train*.tsv or train*.parquet", train=None),
    "no files for testing": table("set data.test_fraction", test=None),
    "no images for testing": Bad(("has no test*.parquet",), {"train.parquet": images()}),
    "an unknown setting": table("data.lable = 'x': unknown key; did you mean 'label'?", lable="x"),
    # tables as files
    "an empty file": table("train.csv: not a CSV file in UTF-8 with a header (empty)", train=""),
    "a header without rows": table("train.csv: has no rows", train=csv([])),
    "a row that is too long": table(
        "row 6: has 5 fields, and the header has 4: 1,2,a,Bern,9", train=csv() + "1,2,a,Bern,9\n"
    ),
    "a row that is too short": table(
        "row 6: has 2 fields, and the header has 4: 1,2", train=csv() + "1,2\n"
    ),
    "a file that is binary": table("train.csv: not a CSV file", train=b"\xff\xfe\x00\x01" * 9),
    "a header in Latin-1": table(
        "train.csv: not a CSV file in UTF-8 with a header ('utf-8' codec can't decode byte 0xe4",
        train=csv(header="\xe4ge,dose,label,centre").encode("latin-1"),
    ),
    "a value in Latin-1, far below": table(
        "train.csv: not a CSV file in UTF-8 with a header (Row #3002:",
        train=csv([*ROWS * 750, ("1", "2.5", "a", "Z\xfcrich")]).encode("latin-1"),
    ),
    "semicolons": table(
        "its columns are age;dose;label;centre; separate columns with commas",
        train=TABLE.replace(",", ";"),
    ),
    "tabs": table("; separate columns with commas", train=TABLE.replace(",", "\t")),
    "semicolons and decimal commas": table(
        "row 2: has 2 fields, and the header has 1, as in 4 rows: 1;2,5;a;Bern; separate "
        "columns with commas, and write decimals with a point",
        train=TABLE.replace(",", ";").replace(".", ","),
    ),
    "decimal commas": table(
        "train.csv: row 2: dose = '2,5': a comma in a number; write it with a decimal point only, "
        "or name the column in data.categorical",
        train=COMMAS,
        test=COMMAS,
    ),
    "decimal commas in one file": table("test.csv: row 2: dose = '2,5'", test=COMMAS),
    "decimal commas in few rows": table(
        "train.csv: row 3: dose = '1.234,5': a comma in a number", train=changed(1, 1, '"1.234,5"')
    ),
    "a quote that is not closed in the last column": table(
        "test.csv: row 3: a quote that is not closed; delete it",
        test=changed(1, 3, '"Basel'),
        label="centre",
    ),
    "a quote that is not closed in the header": table(
        "train.csv: not a CSV file in UTF-8 with a header (a quote that is not closed)",
        train=TABLE.replace("centre", '"centre'),
    ),
    "a quote that is not closed in a large file": table(
        "train.csv: row 3: a quote that is not closed",
        train=changed(1, 2, '"b') + TABLE.partition("\n")[2] * 20_000,
    ),
    "a quote of a label that is closed some rows later": table(
        "train.csv: row 2: centre = 'Bern\\n2,0.5,b,Basel\\n3,1.5,a,Bern': rows in a value; "
        "delete its quotes",
        train=TABLE.replace("Bern", '"Bern', 1).replace("a,Bern\n4", 'a,Bern"\n4'),
        label="centre",
    ),
    "a client of two lines": table(
        "train.csv: row 3: centre = 'Ba\\nsel': a line break",
        train=changed(1, 3, '"Ba\nsel"'),
        client_column="centre",
    ),
    "a category of two lines": table(
        "train.csv: row 3: centre = 'Ba\\nsel': a line break in a value; delete it, or the quote "
        "that begins the value",
        train=changed(1, 3, '"Ba\nsel"'),
    ),
    "a quote that is closed at the next one": table(
        'train.csv: row 3: has 5 fields, and the header has 4: 2,0.5,b,"Ba\\n3,1.5,a,"Bern,9',
        train=changed(1, 3, '"Ba').replace("a,Bern\n4", 'a,"Bern,9"\n4'),
    ),
    "a header in the middle": table(
        "train.csv: row 6: the header again; delete it", train=TABLE + csv()
    ),
    "headers in the middle of texts": Bad(
        ("a.csv: row 4: the header again, as in 2 of 8 rows; delete it",),
        {"a.csv": "text,label\nx y,a\nz y,b\n" * 3},
        {"text": "text", "test_fraction": 0.5},
    ),
    "a truncated Parquet file": Bad(
        ("train.parquet: truncated, or not a Parquet file",),
        {"train.parquet": b"PAR1nonsense", "test.csv": csv()},
    ),
    "a column twice": table(
        "train.csv: column 'age' is there 2 times", train=csv(header="age,age,label,centre")
    ),
    # columns
    "no column of labels": table("data.label = 'outcome': no such column", label="outcome"),
    "no column of clients": table(
        "data.client_column = 'site': no such column", client_column="site"
    ),
    "a test file without a column": table(
        "test.csv: column 'dose': not in both", test="age,label,centre\n1,a,Bern\n"
    ),
    "a test file with another column": table(
        "test.csv: column 'more'",
        test=csv(header="age,dose,label,centre,more", rows=[(*row, "1") for row in ROWS]),
    ),
    "features of two types": table("test.csv: row 2: age = 'old'", test=changed(0, 0, "old")),
    "no features": table("has no column of features", train="label\na\nb\n", test="label\na\n"),
    "features that are constant": table(
        "all features are constant", train="x,label\n1,a\n1,b\n", test="x,label\n1,a\n"
    ),
    "a feature that identifies rows": table(
        "column 'name': such as 'n99': 150 categories",
        train="name,x,label\n" + "".join(f"n{n},{n},{'ab'[n % 2]}\n" for n in range(150)),
        test="name,x,label\nn1,1,a\n",
    ),
    # values
    "a missing feature": table(
        "train.csv: row 3: dose: missing; 1 of 8 rows lack values", train=changed(1, 1, "")
    ),
    "a feature that is no number": table(
        "train.csv: row 4: dose: missing", train=changed(2, 1, "NaN")
    ),
    "an infinite feature": table("row 4: dose: infinite", train=changed(2, 1, "inf")),
    "missing features": table(
        "test.csv: row 2: age: missing; 3 of 8 rows lack values; give them, or set data.missing",
        train=changed(1, 1, ""),
        test=csv([("", "2.5", "a", "Bern"), ("", "", "b", "Basel"), ROWS[2], ROWS[3]]),
    ),
    "missing labels": table(
        "train.csv: row 2: label: missing, as in 2 of 4 rows; a value is required",
        train=csv([("1", "2", "", "x"), ("1", "2", "a", "x"), ROWS[0], ("1", "2", "", "x")]),
    ),
    "a missing label": table("train.csv: row 2: label: missing", train=changed(0, 2, "")),
    "a missing client": table(
        "train.csv: row 5: centre: missing", train=changed(3, 3, ""), client_column="centre"
    ),
    "labels that are fractions": table(
        "column is double; labels must be texts or integers", label="dose"
    ),
    "labels of one class": table(
        "all training samples are of class 'a'", train=csv([ROWS[0], ROWS[2]])
    ),
    # sizes
    "more samples than there are": table("data.train_size = 9: at most 4", train_size=9),
    "more public samples than there are": table("data.held_out = 4: at most 3", held_out=4),
    "a test fraction beside test files": table("leave out the fraction", test_fraction=0.5),
    # images
    "an image column twice": pictures("column 'label' is there 2 times", twice(images(), "label")),
    "images of two sizes": pictures(
        "row 2: image of shape (3, 9, 9), others have (3, 8, 8); set data.image_size",
        images(encoded={2: png(9)}),
    ),
    "test images of another size": pictures(
        "test.parquet: row 0: image of shape", test=images(encoded={n: png(9) for n in range(4)})
    ),
    "an image that is damaged": pictures(
        "train.parquet: row 1: cannot decode the image", images(encoded={1: png()[:40]})
    ),
    "an image that is text": pictures("row 0: cannot decode", images(encoded={0: b"hello"})),
    "a missing image": pictures("row 3: image has no bytes", images(encoded={3: None})),
    "images that are numbers": pictures(
        "column 'image' is int64, must be struct", pa.table({"image": [1, 2], "label": [0, 1]})
    ),
    "no labels of images": pictures("data.label = 'label': no such column", images(label="y")),
    "a negative label": pictures("row 1: label = -1: must be 0..1", images((0, -1, 1, 1))),
    "an enormous label": pictures(
        "row 1: label = 4611686018427387904: must be", images((0, 2**62, 1, 1))
    ),
    "labels of images that are fractions": pictures(
        "must be texts or integers", images((0.0, 1.0, 0.5, 1.0))
    ),
    "a missing label of an image": pictures("row 2: label: missing", images((0, 1, None, 1))),
    "images of one class": pictures("all training samples are of class '0'", images((0, 0, 0, 0))),
    "no clients of images": pictures("'who': no such column", client_column="who"),
    "missing clients of images": pictures(
        "row 1: who: missing", images(who=["x", None, "y", "y"]), client_column="who"
    ),
    "clients of images that are fractions": pictures(
        "column is double", images(who=[0.5, 1, 1, 1]), client_column="who"
    ),
    "a file of images without rows": pictures(
        "train.parquet: has no rows", images(()).cast(images().schema)
    ),
}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def check(folder, files, settings):
    if files is not None:
        (folder / "mine").mkdir()
    for name, content in (files or {}).items():
        write(folder / "mine" / name, content)
    return main(["check-data", str(folder / "mine"), "--settings", yaml.safe_dump(settings)])


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_bad_data_is_told_in_one_line(tmp_path, capsys, recwarn, case):
    assert check(tmp_path, case.files, case.settings) == 1
    assert not recwarn.list
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert all(line.startswith("fedstage check-data: ") for line in lines)
    assert any(all(part in line for part in case.told) for line in lines), lines


def test_what_is_in_a_table(tmp_path, capsys):
    files = {"train.csv": csv(), "test.csv": csv()}
    assert check(tmp_path, files, {"client_column": "centre"}) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/mine: usable as data = table",
        "  samples: 4 for training, 4 for testing; each of shape [2]",
        "  classes: 2: a (2), b (2)",
        "  clients: 2: Basel (2), Bern (2)",
        "  features: 2: age, dose",
        "  notice: 2 clients have fewer than 10 samples: Basel, Bern",
        "  notice: 4 of 4 test samples are also training samples",
        "  settings: data: {table: {folder: mine, label: label, client_column: centre}}, "
        "partition: natural",
    ]


def test_what_is_in_images(tmp_path, capsys):
    files = {"train-0.parquet": images(), "test.parquet": images((1, 1))}
    assert check(tmp_path, files, {"held_out": 1}) == 0
    _, samples, classes, *rest = capsys.readouterr().out.splitlines()
    assert (
        samples == "  samples: 3 for training, 2 for testing, 1 held out; each of shape [3, 8, 8]"
    )
    assert classes.startswith("  classes: 2: 0 (")
    assert rest == [
        "  notice: 1 of 2 classes has no test sample: 0",
        "  notice: 1 class has only one labelled sample: '0'",
        "  notice: 1 of 2 test samples are also training samples",
        "  settings: data: {parquet: {folder: mine, label: label, held_out: 1}}",
    ]


def test_what_may_be_amiss_is_noticed(tmp_path, capsys):
    rows = [("1", "2", "a", "Bern"), ("2", "2", "A ", "bern"), ("3", "2", "a", "Bern")]
    files = {"train.csv": csv(rows), "test.csv": csv([("1", "2", "c", "Bern")])}
    assert check(tmp_path, files, {"client_column": "centre"}) == 0
    out = capsys.readouterr().out
    differ = (
        "whose names differ only in case, spaces, quotes, invisible letters, alphabets or zeros"
    )
    assert "no client has samples of class 'c'" in out
    assert f"classes {differ}: 'A ', 'a'" in out
    assert f"clients {differ}: 'Bern', 'bern'" in out
    assert "left out, as they are constant in the training rows: dose" in out
    assert "2 classes have only one labelled sample: 'A ', 'c'" in out


def test_what_is_in_folders_of_images(tmp_path, capsys):
    files = {f"{who}/{path}": content for who in ("Bern", "Basel") for path, content in CATS.items()
             if who == "Bern" or path < "cats/3"}  # fmt: skip
    assert check(tmp_path, files, {"client_folders": True, "image_size": 16}) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/mine: usable as data = image_folder",
        "  samples: 11 for training, 2 for testing; each of shape [3, 16, 16]",
        "  classes: 2: cats (7), dogs (4)",
        "  clients: 2: Basel (3), Bern (8)",
        "  notice: 2 clients have fewer than 10 samples: Basel, Bern",
        "  notice: 10 of 11 training samples are copies of others; samples with several labels: 1",
        "  notice: 2 of 2 test samples are also training samples",
        "  settings: data: {image_folder: {folder: mine, image_size: 16, client_folders: true}}, "
        "partition: natural",
    ]


def test_what_is_in_texts(tmp_path, capsys):
    rows = "".join(f'"so {n}\nit is",{"good" if n % 2 else "bad"},u{n // 15}\n' for n in range(30))
    settings = {"text": "text", "client_column": "who", "length": 8, "test_fraction": 0.4}
    assert check(tmp_path, {"all.csv": "text,label,who\n" + rows}, settings) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/mine: usable as data = texts",
        "  samples: 18 for training, 12 for testing; each of shape [8]",
        "  classes: 2: bad (10), good (8)",
        "  clients: 2: u0 (9), u1 (9)",
        "  notice: 2 clients have fewer than 10 samples: u0, u1",
        "  settings: data: {texts: {folder: mine, label: label, client_column: who, length: 8, "
        "test_fraction: 0.4}}, partition: natural",
    ]


def experiments(folder, data):
    base = federated(data=data, clients=2, rounds=1, model="mlp")
    content = config(patients=experiment(base=base)) | {"data_folder": str(folder)}
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    (folder / "workflow").mkdir()
    (folder / "workflow/methods.yaml").write_text("fedavg: {local: fedavg}\n")


def test_the_data_of_an_experiment(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    experiments(tmp_path, {"table": {"folder": "own", "label": "outcome", "drop": ["centre"]}})
    for name in ("train", "test"):
        write(tmp_path / f"own/{name}.csv", csv(header="age,dose,outcome,centre"))
    assert main(["check-data", "patients"]) == 0
    head, samples, *_ = capsys.readouterr().out.splitlines()
    assert head == "data = table: usable"
    assert samples.startswith("  samples: 4 for training")
    # A folder of the data folder is found by its name, unless an experiment has that name.
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace(f"data_folder: {tmp_path}", "data_folder: data"))
    (tmp_path / "data/patients").mkdir(parents=True)
    (tmp_path / "own").rename(tmp_path / "data/own")
    assert main(["check-data", "own", "--settings", "{label: outcome}"]) == 0
    assert capsys.readouterr().out.startswith("data/own: usable as data = table\n")
    assert main(["check-data", "patients"]) == 0
    assert capsys.readouterr().out.startswith("data = table: usable\n")
    assert main(["check-data", "patient"]) == 1
    told = "fedstage check-data: patient: no such folder or experiment; did you mean 'patients'?\n"
    assert capsys.readouterr().err == told
