import math

import pandas as pd

from fedstage.results.tables import html, markdown
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


def test_beside_published_numbers_each_cell_says_its_seeds():
    layout = pivot(compared(seeds=[3] * 4))
    assert layout.columns[3].texts == ["60.50 ± 2.00 (n = 3)", "50.00 ± 3.00 (n = 3)"]


def test_what_is_ranked_is_exact():
    means = {(c.group, c.head): [m.value for m in c.means] for c in pivot().columns}
    assert means["alpha = 0.1", "measured"] == [60.5, 50.0]
    assert means["alpha = 0.1", "published"] == [80.18, 78.72]
    assert means["alpha = 0.1", "difference"] == []


def test_a_combination_without_a_run_is_empty_in_all_its_columns():
    layout = pivot(compared().drop(index=2))
    texts = {(column.group, column.head): column.texts for column in layout.columns}
    assert [texts["alpha = 1", head][1] for head in ("measured", "published", "difference")] == [
        "–", "–", "–",
    ]  # fmt: skip
    assert math.isnan(layout.columns[0].means[1].value)


def test_the_legend_says_what_is_published_and_at_which_scales():
    legend = pivot().legend
    assert (
        "**published**: mean ± deviation that FedSDD, Table 2 reports; – where it reports"
        in (legend[2])
    )
    assert legend[3].startswith("**difference**: measured minus published, in percentage points, ")
    assert legend[-2:] == NOTES


def test_one_row_axis_has_columns_beside_the_accuracy():
    layout = lay_out(compared(), ["method", "alpha"], [], "FedSDD, Table 2", NOTES)
    heads = [column.head for column in layout.columns]
    assert heads[:4] == ["Top-1 accuracy (%)", "Published (%)", "Difference (points)", "Seeds"]
    assert layout.columns[1].texts == ["89.06 ± 0.19", "80.18 ± 2.38", "–", "78.72"]
    assert layout.legend[1].startswith("**Published (%)**: mean ± deviation that FedSDD, Table 2")


def test_without_published_numbers_there_is_nothing_of_them():
    plain = compared()
    own = [name for name in plain if name.startswith(("published", "difference"))]
    plain = plain.drop(columns=own)
    layout = lay_out(plain, ["method"], ["alpha"])
    assert [(column.group, column.head) for column in layout.columns] == [
        ("", "alpha = 1"),
        ("", "alpha = 0.1"),
    ]
    assert "published" not in " ".join(layout.legend).lower()
    long = lay_out(plain, ["method", "alpha"], [])
    assert "Published (%)" not in [column.head for column in long.columns]


def test_markdown_names_a_group_above_its_first_column():
    text = markdown.render(pivot(), "T", "S.")
    head = next(line for line in text.splitlines() if line.startswith("| method"))
    assert [cell.strip() for cell in head.strip("|").split("|")] == [
        "method", "alpha = 1", "published", "difference", "alpha = 0.1", "published", "difference",
    ]  # fmt: skip
    assert text.endswith("- Published in FedSDD, Table 2: cifar10.\n")


def test_the_page_has_a_head_above_each_group():
    page = html.render_html(pivot(), "T", "S.")
    assert '<th colspan="3">alpha = 1</th><th colspan="3">alpha = 0.1</th></tr>' in page
    assert page.count("<th>difference</th>") == 2
    assert "<li>Measured at scale <code>mini</code>: digits.</li>" in page


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


def test_a_guarantee_to_samples_is_told_from_that_to_clients():
    of_samples = {"example_epsilon": [NAN, 3.25, NAN, NAN], "delta": [1e-5, 0.01, 1e-3, 1e-5]}
    columns = pivot(compared(**PRIVATE | of_samples)).columns
    (texts,) = [one.texts for one in columns if (one.head, one.group) == ("ε", "alpha = 0.1")]
    assert texts == ["3.25 a sample (δ = 0.01)", "1.50 (δ = 1e-05)"]


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


def test_a_guarantee_is_a_column_of_a_long_table_only_where_there_is_one():
    heads = [
        [column.head for column in pivot(table, ("method", "alpha"), ()).columns]
        for table in (compared(), compared(**PRIVATE))
    ]
    assert "ε" not in heads[0]
    assert "ε" in heads[1]
