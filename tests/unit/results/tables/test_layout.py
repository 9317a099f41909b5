import math

import pandas as pd

from fedstage.results.tables import markdown
from fedstage.results.tables.layout import lay_out

NAN = math.nan
NOTES = ["Measured at scale `mini`: digits.", "Published in FedSDD, Table 2: cifar10."]


def compared(**changes):
    columns = {
        "method": ["fedsdd", "fedsdd", "fedavg", "fedavg"],
        "alpha": [1.0, 0.1, 1.0, 0.1],
        "top1_accuracy": [70.0, 60.5, 71.0, 50.0],
        "std": [1.0, 2.0, NAN, 3.0],
        "seeds": [3, 3, 1, 3],
        "client_std": [NAN] * 4,
        "own_test_mean": [math.nan] * 4,
        "own_test_std": [math.nan] * 4,
        "own_mean": [70.0] * 4,
        "own_std": [1.0] * 4,
        "bytes_up": [1] * 4,
        "bytes_down": [1] * 4,
        "rounds": [8] * 4,
        "published": [89.06, 80.18, NAN, 78.72],
        "published_std": [0.19, 2.38, NAN, NAN],
        "published_seeds": [3, 3, NAN, 3],
        "difference": [-19.06, -19.68, NAN, -28.72],
        "difference_low": [-21.4, -24.7, NAN, NAN],
        "difference_high": [-16.7, -14.7, NAN, NAN],
    }
    return pd.DataFrame(columns | changes)


def pivot(table=None, rows=("method",), columns=("alpha",)):
    table = compared() if table is None else table
    return lay_out(table, list(rows), list(columns), "FedSDD, Table 2", NOTES)


def test_each_group_has_measured_published_and_difference():
    layout = pivot()
    assert layout.keys == [("fedsdd",), ("fedavg",)]
    shown = [(column.group, column.head, column.texts) for column in layout.columns]
    assert shown == [
        ("alpha = 1", "measured", ["70.00 ± 1.00 (n = 3)", "71.00 (n = 1)"]),
        ("alpha = 1", "published", ["89.06 ± 0.19", "–"]),
        ("alpha = 1", "difference", ["−19.06 [−21.40, −16.70]", "–"]),
        ("alpha = 0.1", "measured", ["60.50 ± 2.00 (n = 3)", "50.00 ± 3.00 (n = 3)"]),
        ("alpha = 0.1", "published", ["80.18 ± 2.38", "78.72"]),
        ("alpha = 0.1", "difference", ["−19.68 [−24.70, −14.70]", "−28.72"]),
    ]


def test_the_legend_says_what_is_published_and_at_which_scales():
    legend = pivot().legend
    assert (
        "**published**: mean ± deviation that FedSDD, Table 2 reports; – where it reports"
        in (legend[2])
    )
    assert legend[3].startswith("**difference**: measured minus published, in percentage points, ")
    assert legend[-2:] == NOTES


def test_markdown_names_a_group_above_its_first_column():
    text = markdown.render(pivot(), "T", "S.")
    head = next(line for line in text.splitlines() if line.startswith("| method"))
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "method", "alpha = 1", "published", "difference", "alpha = 0.1", "published", "difference",
    ]  # fmt: skip
    assert text.endswith("- Published in FedSDD, Table 2: cifar10.\n")


RELEASED = "as_released: highest round, no result (%)"


def test_maxima_stand_beside_the_result_under_a_name_that_cannot_be_taken_for_it():
    table = compared(as_released=[75.0, 66.0, 74.0, 60.0], as_released_std=[NAN, 2.0, NAN, NAN])
    layout = pivot(table)
    heads = [column.head for column in layout.columns[:4]]
    assert heads == ["measured", "published", "difference", RELEASED]
    assert layout.columns[3].texts == ["75.00", "74.00"]
    assert not list(layout.columns[3].means)  # never ranked
    assert any("chosen by the very samples" in line for line in layout.legend)
    alone = table.drop(columns=[name for name in table if "published" in name or "diff" in name])
    heads = [column.head for column in pivot(alone).columns]
    assert heads == ["measured", RELEASED] * 2
    long = lay_out(alone, ["method", "alpha"], [])
    assert RELEASED in [column.head for column in long.columns]


PRIVATE = {"epsilon": [2.104, NAN, math.inf, 1.5], "delta": [1e-5, NAN, 1e-3, 1e-5]}


def test_a_guarantee_stands_next_to_what_is_measured():
    layout = pivot(compared(**PRIVATE))
    texts = {column.group: column.texts for column in layout.columns if column.head == "ε"}
    assert texts == {
        "alpha = 1": ["2.10 (δ = 1e-05)", "∞ (δ = 0.001)"],
        "alpha = 0.1": ["–", "1.50 (δ = 1e-05)"],
    }
    (legend,) = [line for line in layout.legend if line.startswith("**ε**")]
    assert "nor that settings were chosen" in legend
