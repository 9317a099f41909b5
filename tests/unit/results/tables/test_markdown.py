import math

import pandas as pd

from fedstage.results.tables import markdown
from fedstage.results.tables.labels import human_bytes
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


def test_title_and_source_stand_above_the_table():
    text = render(table(), ["method"], [], "Table 2", "All of it.")
    assert text.startswith("# Table 2\n\nAll of it.\n\n| method")
    assert text.endswith(".\n")


def test_values_have_two_decimals_and_bytes_a_unit():
    lines = cells(render(table(), ["method"], [], "t", "s"))
    assert lines == [
        ["method", "Top-1 accuracy (%)", "Seeds", "Client std (points)",
         "Clients' own test samples (%)", "Clients' own class mix (%)", "Upload", "Download"],
        ["scaffold", "61.23 ± 0.46", "2", "–", "–", "63.00 ± 3.50", "37.5 kB", "150.0 kB"],
        ["fedavg", "7.00 ± 0.10", "2", "4.20", "66.00 ± 1.50", "–", "0 B", "999 B"],
    ]  # fmt: skip


def test_every_measured_column_has_one_line_in_the_legend():
    text = render(table(rounds=[8, 1]), ["method"], [], "t", "s")
    for name in cells(text)[0][1:]:
        assert sum(line.startswith(f"- **{name}**: ") for line in text.splitlines()) == 1


def test_what_no_row_has_is_no_column():
    """Where all clients have one model, their models have no deviation."""
    lines = cells(render(table(client_std=[NAN, NAN]), ["method"], [], "t", "s"))
    assert "Client std (points)" not in lines[0]
    assert {len(line) for line in lines} == {7}
    assert "Client std" not in render(table(client_std=[NAN, NAN]), ["method"], [], "t", "s")


def test_rounds_are_a_column_only_where_they_differ():
    assert "Round" not in cells(render(table(), ["method"], [], "t", "s"))[0]
    lines = cells(render(table(rounds=[8, 1]), ["method"], [], "t", "s"))
    assert [line[-1] for line in lines] == ["Round", "8", "1"]


def test_column_axes_become_columns_in_the_order_of_first_appearance():
    lines = cells(render(grid(), ["method"], ["alpha"], "t", "s"))
    assert lines == [
        ["method", "alpha = 1", "alpha = 0.1"],
        ["scaffold", "70.00 ± 1.00", "60.00 ± 2.00"],
        ["fedavg", "–", "50.00 ± 3.00"],
    ]


def test_several_column_axes_make_a_column_a_combination():
    wide = grid(data=["cifar10", "svhn", "svhn"])
    assert cells(render(wide, ["method"], ["data", "alpha"], "t", "s"))[0] == [
        "method",
        "data = cifar10, alpha = 1",
        "data = svhn, alpha = 0.1",
    ]


def test_the_pivot_says_its_seeds_once_or_in_each_cell_where_they_differ():
    assert "over 3 seeds" in render(grid(), ["method"], ["alpha"], "t", "s")
    single = grid(seeds=[1, 1, 1], std=[NAN] * 3)
    assert "of a single seed" in render(single, ["method"], ["alpha"], "t", "s")
    lines = cells(render(grid(seeds=[3, 1, 3], std=[1.0, NAN, 3.0]), ["method"], ["alpha"], "", ""))
    assert lines[1] == ["scaffold", "70.00 ± 1.00 (n = 3)", "60.00 (n = 1)"]


def test_the_pivot_says_the_rounds_in_each_cell_where_they_differ():
    lines = cells(render(grid(rounds=[8, 8, 1]), ["method"], ["alpha"], "t", "s"))
    assert lines[2] == ["fedavg", "–", "50.00 ± 3.00 (round 1)"]


def test_bytes_for_people():
    counts = [0, 999, 1000, 37_512, 999_960, 1_500_000_000, 5 * 10**15]
    texts = ["0 B", "999 B", "1.0 kB", "37.5 kB", "1.0 MB", "1.5 GB", "5000.0 TB"]
    assert [*map(human_bytes, counts)] == texts


def test_source_names_data_and_round():
    last = pd.DataFrame({"role": ["test", "test"], "round": [8, 8]})
    assert describe_source("e", "mini", last) == (
        "Experiment `e` at scale `mini`: accuracy on test data after round 8."
    )
    last = pd.DataFrame({"role": ["test", "validation"], "round": [8, 1]})
    assert describe_source("e", "mini", last).endswith(
        "test data and validation data after the last evaluated round of each run."
    )


def test_trailing_zeros_stay():
    lines = cells(render(table(std=[NAN, NAN], top1_accuracy=[61.2, 7.0]), ["method"], [], "", ""))
    assert [line[1] for line in lines[1:]] == ["61.20", "7.00"]
