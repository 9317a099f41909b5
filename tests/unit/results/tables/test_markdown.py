import math

import pandas as pd

from fedstage.results.tables import markdown
from fedstage.results.tables.layout import describe_source, lay_out

NAN = math.nan


def table(**changes):
    columns = {
        "method": ["scaffold", "fedavg"],
        "top1_accuracy": [61.234, 7.0],
        "std": [0.456, 0.1],
        "seeds": [2, 2],
        "client_std": [NAN, 4.2],
        "own_test_mean": [NAN, 66.0],
        "own_test_std": [NAN, 1.5],
        "own_mean": [63.0, NAN],
        "own_std": [3.5, NAN],
        "bytes_up": [37512, 0],
        "bytes_down": [150048, 999],
        "rounds": [8, 8],
    }
    return pd.DataFrame(columns | changes)


def grid(**changes):
    columns = {
        "method": ["scaffold", "scaffold", "fedavg"],
        "alpha": [1.0, 0.1, 0.1],
        "top1_accuracy": [70.0, 60.0, 50.0],
        "std": [1.0, 2.0, 3.0],
        "seeds": [3, 3, 3],
        "rounds": [8, 8, 8],
    }
    return pd.DataFrame(columns | changes)


def render(table, rows, columns, title, source):
    return markdown.render(lay_out(table, rows, columns), title, source)


def cells(text):
    """Return the lines of the Markdown table as lists of cells, without the rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [split[0], *split[2:]]


def test_values_have_two_decimals_and_bytes_a_unit():
    lines = cells(render(table(), ["method"], [], "t", "s"))
    assert lines == [
        ["method", "Top-1 accuracy (%)", "Seeds", "Client std (points)",
         "Clients' own test samples (%)", "Clients' own class mix (%)", "Upload", "Download"],
        ["scaffold", "61.23 ± 0.46", "2", "–", "–", "63.00 ± 3.50", "37.5 kB", "150.0 kB"],
        ["fedavg", "7.00 ± 0.10", "2", "4.20", "66.00 ± 1.50", "–", "0 B", "999 B"],
    ]  # fmt: skip


def test_column_axes_become_columns_in_the_order_of_first_appearance():
    lines = cells(render(grid(), ["method"], ["alpha"], "t", "s"))
    assert lines == [
        ["method", "alpha = 1", "alpha = 0.1"],
        ["scaffold", "70.00 ± 1.00", "60.00 ± 2.00"],
        ["fedavg", "–", "50.00 ± 3.00"],
    ]


def test_the_pivot_says_its_seeds_once_or_in_each_cell_where_they_differ():
    assert "over 3 seeds" in render(grid(), ["method"], ["alpha"], "t", "s")
    single = grid(seeds=[1, 1, 1], std=[NAN] * 3)
    assert "of a single seed" in render(single, ["method"], ["alpha"], "t", "s")
    lines = cells(render(grid(seeds=[3, 1, 3], std=[1.0, NAN, 3.0]), ["method"], ["alpha"], "", ""))
    assert lines[1] == ["scaffold", "70.00 ± 1.00 (n = 3)", "60.00 (n = 1)"]


def test_source_names_data_and_round():
    last = pd.DataFrame({"role": ["test", "test"], "round": [8, 8]})
    assert describe_source("e", "mini", last) == (
        "Experiment `e` at scale `mini`: accuracy on test data after round 8."
    )
    last = pd.DataFrame({"role": ["test", "validation"], "round": [8, 1]})
    assert describe_source("e", "mini", last).endswith(
        "test data and validation data after the last evaluated round of each run."
    )
