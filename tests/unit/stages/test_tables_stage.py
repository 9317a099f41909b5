import re
import statistics
from html import unescape

import pandas as pd
import pyarrow.parquet as pq
import pytest
from measured import CANDIDATES, write_metrics
from tests.shared.stages import call

from fedstage.storage.files import load_json, save_json

ACCURACIES = {
    ("scaffold", 1.0): [70.1, 72.3],
    ("scaffold", 0.1): [60.7, 58.2],
    ("fedavg", 1.0): [66.6],
    ("fedavg", 0.1): [51.5, 53.9],
}


@pytest.fixture
def runs(tmp_path):
    listed = []
    for (method, alpha), accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            path = tmp_path / f"{method}_{alpha}_{seed}.parquet"
            metrics = write_metrics(path, [9.0, accuracy], bytes_up=[37512] * 2)
            settings = {"method": method, "seed": seed, "partition.alpha": alpha}
            run = {"settings": settings, "metrics": metrics, "partition": "unread"}
            listed.append(run | {"candidates": CANDIDATES})
    content = {
        "experiment": "quickstart",
        "scale": "default",
        "title": "The title",
        "rows": ["method"],
        "columns": ["partition.alpha"],
        "metric": "top1_accuracy",
        "runs": listed,
    }
    path = tmp_path / "runs.json"
    save_json(path, content)
    return path


def make(runs, name="table"):
    paths = {
        kind: runs.parent / f"{name}.{suffix}"
        for kind, suffix in (
            ("csv", "csv"),
            ("parquet", "parquet"),
            ("markdown", "md"),
            ("html", "html"),
            ("latex", "tex"),
        )
    }
    call("tables", {"runs": runs} | paths)
    return paths


def test_csv_and_parquet_hold_the_same_exact_numbers(runs):
    paths = make(runs)
    recipes = paths["csv"].read_bytes().decode().split("\n")
    rows = pq.read_table(paths["parquet"]).to_pylist()
    head = recipes[0].split(",")
    assert head[:5] == ["method", "partition.alpha", "top1_accuracy", "std", "seeds"]
    assert recipes[-1] == ""
    for recipe, row, accuracies in zip(recipes[1:-1], rows, ACCURACIES.values(), strict=True):
        cells = dict(zip(head, recipe.split(","), strict=True))
        assert row["top1_accuracy"] == pytest.approx(statistics.mean(accuracies), abs=1e-12)
        assert float(cells["top1_accuracy"]) == row["top1_accuracy"]
        assert (cells["bytes_up"], row["bytes_up"]) == ("37512", 37512)
        assert (cells["client_std"], row["client_std"]) == ("", None)
        if len(accuracies) == 1:
            assert (cells["std"], row["std"]) == ("", None)
        else:
            assert row["std"] == pytest.approx(statistics.stdev(accuracies), abs=1e-12)
            assert float(cells["std"]) == row["std"]
    assert [(row["method"], row["partition.alpha"]) for row in rows] == list(ACCURACIES)


def test_markdown_has_a_line_a_method_and_a_column_an_alpha(runs):
    text = make(runs)["markdown"].read_text(encoding="utf-8")
    assert text.startswith("# The title\n\nExperiment `quickstart` at scale `default`")
    assert "after round 2" in text
    rows = [line.split() for line in text.splitlines() if line.startswith("| scaffold")]
    assert [" ".join(row) for row in rows] == [
        "| scaffold | **71.20 ± 1.56 (n = 2)** | **59.45 ± 1.77 (n = 2)** |"
    ]


def test_the_page_shows_the_cells_of_the_markdown(runs):
    page = make(runs)["html"].read_text(encoding="utf-8")
    assert "<b>71.20 ± 1.56 (n = 2)</b>" in page
    assert "52.70 ± 1.70 (n = 2)<sup>*</sup>" in page
    page = re.sub("</?b>(?=.*</t[dh]>)", "**", page).replace("<sup>*</sup>", " *")
    shown = [
        [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", page)
    ]
    text = make(runs)["markdown"].read_text(encoding="utf-8")
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    expected = [[cell.strip() for cell in row] for row in (rows[0], *rows[2:])]
    assert shown == expected
    assert "<h2>The title</h2>" in page


def test_published_numbers_are_beside_in_every_file(runs):
    content = load_json(runs)
    content |= {"published": "FedSDD, Table 2", "notes": ["Measured at scale `x`.", "Elsewhere."]}
    numbers = {"scaffold": {"value": 80.0, "std": 1.5, "seeds": 3}, "fedavg": None}
    for run in content["runs"]:
        run["published"] = numbers[run["settings"]["method"]]
    save_json(runs, content)
    paths = make(runs)
    rows = pq.read_table(paths["parquet"]).to_pylist()
    assert [row["published"] for row in rows] == [80.0, 80.0, None, None]
    assert rows[0]["difference"] == pytest.approx(71.2 - 80.0)
    assert (rows[0]["published_std"], rows[0]["published_seeds"]) == (1.5, 3)
    table = pd.read_csv(paths["csv"])
    assert list(table["difference"][:2]) == [row["difference"] for row in rows[:2]]
    texts = {
        kind: paths[kind].read_text(encoding="utf-8") for kind in ("markdown", "html", "latex")
    }
    for kind, text in texts.items():
        assert "71.20 ± 1.56 (n = 2)".replace("±", "$\\pm$" if kind == "latex" else "±") in text
        assert "8.80" in text
        assert "FedSDD, Table 2" in text
        assert "Elsewhere." in text
