"""Properties, schedules and round times, beside what really runs."""

import csv

import pytest
import yaml

from fedstage.plan.stages import jobs_of
from fedstage.plan.training import global_model
from fedstage.settings.recipes import Recipe
from fedstage.storage.yaml_files import read_recipe

pytestmark = pytest.mark.workflow

COMPUTED = ["properties", "simulation"]


def with_results(project, results, **changes):
    """Let the experiment of a working folder make other results."""
    project.configure(**changes)
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["results"] = results
    path.write_text(yaml.safe_dump(config))
    return project


def rows(project, name):
    return list(csv.DictReader((project.path / name).open()))


def test_properties_and_simulation_train_nothing_and_are_made_once(project):
    with_results(project, COMPUTED)
    run = project.make()
    assert dict(run.jobs) == {"all": 1, "properties": 1, "simulation": 1}
    found = {row["method"]: row for row in rows(project, "results/properties/tiny/default.csv")}
    assert found["fedsdd"]["reader"] == ""
    found = {row["method"] for row in rows(project, "results/simulation/tiny/default.csv")}
    assert found == {"fedavg", "fedsdd", "scaffold"}
    assert project.files("results/figures/tiny/default_schedule.png")
    assert not project.files("results/training/*/*[!l]")  # but recipes, which the plan writes
    assert "| FedSDD " in run.output  # the tables are shown
    assert not project.plan().jobs
    # A call for one file shows its table alone.
    (project.path / "results/properties/tiny/default.md").unlink()
    run = project.make("results/properties/tiny/default.md")
    assert "results/properties/tiny/default.md\n\n#" in run.output
    # What is simulated belongs to the definition.
    path = project.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["simulation"] = {"distillation": 5.0}
    path.write_text(yaml.safe_dump(config))
    assert project.plan().jobs.keys() == {"all", "properties", "simulation"}


def test_a_key_that_config_yaml_has_twice_is_refused(project):
    path = project.path / "config.yaml"
    path.write_text(path.read_text() + "targets: [tiny]\n")
    run = project.call("--dry-run")
    assert run.code == 1
    assert "config.yaml: line" in run.output
    assert "duplicate key 'targets' (first used in line" in run.output


@pytest.mark.parametrize("method", ["fedavg-K2-designated", "scaffold"])
def test_the_jobs_that_are_simulated_are_those_that_run(finished, tmp_path, method):
    """Snakemake, asked for the last models in an empty folder, plans the same jobs."""
    recipe = read_recipe(finished.recipe(method=method) / "recipe.yaml", Recipe)
    models = [global_model(recipe, 2, group) for group in range(recipe.global_models)]
    planned = type(finished)(tmp_path).configure().plan(*models).jobs
    stages = [job.stage for job in jobs_of(recipe, 2)]
    assert planned["local_training"] == stages.count("local_training") > 0
    assert planned["logits"] == stages.count("logits")
    assert planned["distillation"] == stages.count("distillation")
    aggregations = sum(count for rule, count in planned.items() if rule.startswith("aggregation"))
    assert aggregations == stages.count("aggregation")


def test_costs_stand_beside_what_is_reached(copy):
    with_results(copy, ["communication", "costs"])
    # Communication looks at validation samples, too.
    assert copy.make().jobs.keys() == {"all", "evaluation", "scores", "costs", "table", "figure"}
    found = {row["method"]: row for row in rows(copy, "results/costs/tiny/default.csv")}
    sent = rows(copy, "results/communication/tiny/default.csv")
    for name, row in found.items():
        (total,) = (one for one in sent if one["method"] == name)
        assert float(row["bytes"]) == float(total["bytes"])
        assert float(row["top1_accuracy"]) == float(total["top1_accuracy"])
        assert float(row["clients_s"]) > 0 < float(row["server_s"])
    assert float(found["fedsdd"]["server_s"]) > float(found["fedavg"]["server_s"])
    assert (
        "Difference to the first" in copy.path.joinpath("results/costs/tiny/default.md").read_text()
    )
    assert not copy.plan().jobs


def test_round_times_are_those_of_the_jobs_and_claims_are_judged_by_them(copy):
    with_results(copy, ["round_times"])
    path = copy.path / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["experiments"]["tiny"]["table"] = {"metric": "added_s"}
    about = {"text": "T.", "place": "P", "experiment": "tiny"}
    one, other = {"method": "fedsdd"}, {"method": "fedavg"}
    config["claims"] = [
        about | {"id": "added", "ratio": one, "to": one | {"method": "scaffold"}, "at_most": 2.0},
        about | {"id": "round", "metric": "round_s", "greater": one, "than": other},
        about | {"id": "loss", "metric": "loss", "greater": one, "than": other},
    ]
    path.write_text(yaml.safe_dump(config))
    run = copy.make()
    assert run.jobs.keys() == {"all", "scores", "costs", "table"}
    found = {row["claim"]: row for row in rows(copy, "results/claims/tiny/default.csv")}
    # Nothing is distilled by SCAFFOLD; one seed decides nothing.
    assert [found[name]["seeds"] for name in ("added", "round", "loss")] == ["0", "1", "1"]
    assert found["added"]["claim_verdict"] == "not measured"
    times = {row["method"]: row for row in rows(copy, "results/round_times/tiny/default.csv")}
    assert times.keys() == {"fedavg", "fedsdd", "scaffold"}
    for row in times.values():
        assert 0 <= float(row["participant_s"]) <= float(row["training_s"]) <= float(row["round_s"])
    assert float(times["fedsdd"]["distillation_s"]) > 0
    assert times["fedavg"]["distillation_s"] == ""
    difference = float(times["fedsdd"]["round_s"]) - float(times["fedavg"]["round_s"])
    assert float(found["round"]["mean"]) == pytest.approx(difference, abs=2e-6)
    assert not copy.plan().jobs


def test_jobs_that_do_the_work_of_several_tell_the_seconds_of_each(project):
    with_results(project, ["round_times"], execution={"granularity": "segment"}).make()
    found = {row["method"]: row for row in rows(project, "results/round_times/tiny/default.csv")}
    for name, row in found.items():
        participant, training = float(row["participant_s"]), float(row["training_s"])
        assert 0 < 1.5 * participant < training < float(row["round_s"]), name
    parts = ("training_s", "aggregation_s", "logits_s", "distillation_s")
    assert all(float(found["fedsdd"][part]) > 0 for part in parts)
