import pytest
from measured import rows_of

from fedstage.results.costs.table import shown_costs

SCORES = {("a", 0.1): [50.0, 60.0, 70.0], ("b", 0.1): [53.0, 62.0, 74.0], ("b", 1.0): [80.0, 81.0]}


def run(method, alpha, seed, score, **changes):
    settings = {"method": method, "partition.alpha": alpha, "seed": seed}
    known = {"bytes": 2e6, "clients_s": 1.5, "server_s": 40.0, "memory_bytes": 3 * 2.0**20}
    return settings | {"score": score} | known | changes


@pytest.fixture
def runs():
    return [
        run(method, alpha, seed, score)
        for (method, alpha), scores in SCORES.items()
        for seed, score in enumerate(scores)
    ]


def shown(runs):
    return rows_of(shown_costs(runs, ["method"], ["partition.alpha"], "top1_accuracy"))


def test_each_is_compared_with_the_first_of_its_column_by_seed(runs):
    first, second, alone = shown(runs)
    assert first["Beside the first"] == alone["Beside the first"] == "–"
    # Differences 3, 2 and 4: mean 3, deviation 1, t of 2 degrees of freedom 4.303.
    assert second["Beside the first"] == "+3.00 [+0.52, +5.48]"
    assert second["Top-1 accuracy (%)"] == "63.00 ± 10.54"


def test_costs_are_means_over_seeds():
    runs = [
        run("a", 1, 0, 1.0, bytes=1e6, clients_s=9.0, server_s=150.0, memory_bytes=2**19),
        run("a", 1, 1, 1.0, bytes=2e6, clients_s=10.5, server_s=151.0, memory_bytes=2**20),
    ]
    (row,) = shown(runs)
    assert [row[name] for name in ("Bytes", "Clients (s)", "Server (s)", "Memory (MiB)")] == [
        "1.5 MB", "9.75", "150", "0.75",
    ]  # fmt: skip


def test_a_guarantee_stands_next_to_accuracy_where_any_run_has_one(runs):
    assert "ε" not in shown(runs)[0]
    private = [run("p", 0.1, seed, 61.0, epsilon=2.1 + seed, delta=1e-5) for seed in (0, 1)]
    single = run("s", 0.1, 0, 61.0, epsilon=None, example_epsilon=4.0, delta=1e-4)
    endless = run("q", 0.1, 0, 61.0, epsilon=float("inf"), delta=1e-3)
    table = shown([*runs, *private, endless, single])
    assert [row["ε"] for row in table if row["partition.alpha"] == "0.1"] == [
        "–", "–", "3.10 (δ = 1e-05)", "∞ (δ = 0.001)",
        "4.00 a sample (δ = 0.0001)",
    ]  # fmt: skip
    assert list(table[0])[2:5] == ["Top-1 accuracy (%)", "Beside the first", "ε"]
