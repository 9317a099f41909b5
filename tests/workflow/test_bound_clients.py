"""Clients that are bound to an architecture take part in its groups only."""

import pytest
import yaml

from fedstage.storage.tables import load_table

pytestmark = pytest.mark.workflow

ALLOWED = {0: {0, 3}, 1: {1, 2, 3}}  # by group


def test_bound_clients_are_in_their_groups_and_methods_share_the_draw(project, new_project):
    methods = ["bound_clients", "bound_ensemble", "two_architectures"]
    run = project.configure(rounds=3, methods=methods).make()
    assert run.jobs["participation"] == 2
    assert len(project.files("results/participation/2_of_4-bound-seed0-*/*.parquet")) == 1
    assert project.files("results/participation/2_of_4-seed0/*.parquet")
    seen = {0: set(), 1: set()}
    bound = 0
    for folder in (project.path / "results/training").iterdir():
        settings = yaml.safe_load((folder / "recipe.yaml").read_text())["settings"]
        for path in (
            folder.rglob("participants.parquet") if "client_architectures" in settings else ()
        ):
            (row,) = load_table(path).to_pylist()
            seen[row["group"]].add(row["client"])
            bound += 1
    assert bound == 2 * 3 + 2 * 2  # without distillation, and from the second round on with it
    assert all(seen[group] <= allowed for group, allowed in ALLOWED.items())
    # One job a segment gives the same bytes.
    other = new_project()
    other.configure(rounds=3, methods=methods, execution={"granularity": "segment"}).make()
    expected, found = project.results(), other.results()
    drawn = [path for path in expected if "/participation/" in path or "/metrics/" in path]
    assert len(drawn) == 2 + 3
    assert {path: found[path] for path in drawn} == {path: expected[path] for path in drawn}


def test_binding_clients_leaves_unbound_recipes_as_they_are(copy):
    config = yaml.safe_load((copy.path / "config.yaml").read_text())
    config["experiments"]["tiny"]["grid"]["method"].append("bound_clients")
    (copy.path / "config.yaml").write_text(yaml.safe_dump(config))
    plan = copy.plan()
    assert plan.jobs["participation"] == 1
    assert len(plan.trained()) == 2 * 2  # a round without distillation before, one with
    assert all("_and_others-" in recipe for _, _, recipe in plan.trained())
    assert copy.files("results/participation/2_of_4-seed0/rounds_0001-0100.parquet")


def test_too_few_clients_for_a_group_are_told_before_anything_runs(project):
    config = yaml.safe_load((project.path / "config.yaml").read_text())
    tiny = config["experiments"]["tiny"]
    tiny["grid"]["method"] = ["bound_clients"]
    tiny["methods"]["bound_clients"]["client_architectures"] = [
        {"model": "cnn_small", "clients": 4}
    ]
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    run = project.call("--dry-run")
    assert run.code != 0
    assert (
        "tiny/default, method bound_clients: client_architectures: 0 clients are bound to none: "
        "must be at least 1" in run.output
    )
