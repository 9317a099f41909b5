"""Participants that start from older models: the same files in every granularity, and no others."""

import pytest
import yaml
from safetensors.torch import load_file

from fedstage.storage.tables import load_table

from .conftest import tiny_config

pytestmark = pytest.mark.workflow

#: Of even rounds everybody would be late, so that nobody comes.
WITHDRAWN = {"withdraw_stale": True, "staleness": {"cyclic": {"delays": [0, 1]}}}
GROUPS = {"like": "fedsdd", "global_models": 2}
METHODS = {
    "stragglers": {"like": "feddf", "staleness": {"cyclic": {"delays": [0, 1, 2]}}},
    "random": GROUPS | {"staleness": {"random": {"probabilities": [0.4, 0.3, 0.3]}}},
    "withdrawn": {"like": "feddf"} | WITHDRAWN,
    "withdrawn_in_groups": GROUPS | WITHDRAWN,
}


def run(project, **execution):
    config = tiny_config(rounds=3, methods=list(METHODS), execution=execution)
    config["experiments"]["tiny"]["methods"] = METHODS
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    project.make()
    return project


@pytest.fixture(scope="module")
def made(new_project):
    return run(new_project())


def results(project):
    """Results without what only segments make: students of the last round, and round states."""
    unread = ("/state.", "round_0003/group_1/distilled")
    found = project.results().items()
    return {path: content for path, content in found if not any(one in path for one in unread)}


def test_segments_of_stale_participants_give_the_same_bytes(made, project):
    found = results(run(project, granularity="segment", segment_rounds=2))
    expected = results(made)
    assert {path: found.get(path) for path in expected} == expected


def test_withdrawing_trains_nothing_and_leaves_the_models_as_they_were(made):
    recipes = made.path.glob("results/training/*/recipe.yaml")
    withdrawn = [path.parent for path in recipes if "withdraw_stale: true" in path.read_text()]
    # FedDF, FedSDD, and what they share with the recipes that are not taught.
    assert len(withdrawn) == 4
    for table in (path for folder in withdrawn for path in folder.glob("*/*/participants.parquet")):
        even = int(table.parent.parent.name.removeprefix("round_")) % 2 == 0
        participants = 1 if "-K2-" in str(table) else 2
        assert load_table(table).num_rows == (0 if even else participants)
    (folder,) = (path for path in withdrawn if "-fedavg-basic-" in path.name)
    distilled = sorted(folder.glob("*/group_0/distilled.*"))
    assert [path.parts[-3] for path in distilled] == ["round_0001", "round_0003"]
    before, after = (
        load_file(folder / name)
        for name in ("round_0001/group_0/distilled.safetensors",
                     "round_0002/group_0/aggregated.safetensors")
    )  # fmt: skip
    assert all(before[name].equal(after[name]) for name in before)
