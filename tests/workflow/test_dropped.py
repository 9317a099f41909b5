"""Updates that are dropped because training diverges are told."""

import pandas as pd
import pytest

pytestmark = pytest.mark.workflow

HOT = {"client": {"epochs": 1, "batch_size": 32, "learning_rate": 1e38}, "on_divergence": "drop"}


@pytest.mark.parametrize("granularity", ["participant", "segment"])
def test_dropped_updates_are_told_by_the_job_its_record_and_the_table(project, granularity):
    execution = {"granularity": granularity}
    project.configure(methods=["fedavg"], rounds=1, keep="all", execution=execution, **HOT)
    run = project.make("results/tables/tiny/default.md", "results/tables/tiny/default.csv")
    assert "round 1, group 0: 2 of 2 updates dropped, because training diverged" in run.output
    logs = [path.read_text() for path in (project.path / "results/logs").rglob("*.json")]
    assert sum("2 of 2 updates dropped" in text for text in logs) == 1
    table = project.path / "results/tables/tiny/default"
    assert "| 2 of 2" in " ".join(table.with_suffix(".md").read_text().split())
    frame = pd.read_csv(table.with_suffix(".csv"))
    assert frame[["dropped", "updates"]].to_numpy().tolist() == [[2, 2]]
