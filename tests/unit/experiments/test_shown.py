from pathlib import Path

import pytest
from fedstage.experiments.disk_space import describe_size
from fedstage.experiments.shown import shown_results, shown_runs

from fedstage.experiments.catalogue import load_catalogue
from fedstage.plan.training_folder import training_id
from fedstage.storage.yaml_files import load_yaml

WORKFLOW = Path(__file__).parents[3] / "workflow"
TABLE5 = "results/tables/fedsdd_table5/smoke"
QUICKSTART = "results/tables/quickstart/default.md"
REPORT = "results/report/quickstart/default.html"


@pytest.fixture(scope="module")
def known():
    config = load_yaml(WORKFLOW.parent / "config.yaml") | {"targets": ["quickstart"]}
    return load_catalogue(config, WORKFLOW, f"{TABLE5}.md")


def fedavg(known):
    return next(
        run.recipe for run in known.runs["quickstart", "default"] if run.axes["method"] == "fedavg"
    )


@pytest.mark.parametrize("wanted", [[], ["all"]])
def test_without_a_file_the_configured_tables_are_shown(known, wanted):
    assert shown_results(known, wanted) == [QUICKSTART, REPORT]


@pytest.mark.parametrize("kind", ["md", "csv", "tex"])
def test_the_table_that_is_wanted_is_shown_and_not_the_configured_one(known, kind):
    assert shown_results(known, [f"{TABLE5}.{kind}"]) == [f"{TABLE5}.md"]


def test_an_experiment_by_its_name_shows_all_of_its_tables(known):
    assert shown_results(known, ["quickstart"]) == [QUICKSTART, REPORT]
    assert f"{TABLE5}.md" in shown_results(known, ["fedsdd_table5/smoke"])


def test_an_experiment_without_a_report_shows_none(known):
    shown = shown_results(known, ["fedsdd_table5/smoke"])
    assert shown
    assert not any("/report/" in path for path in shown)


def test_a_figure_or_a_model_shows_no_table(known):
    recipe = fedavg(known)
    model = f"results/training/{training_id(recipe)}/round_0001/group_0/aggregated.safetensors"
    assert shown_results(known, ["results/figures/fedsdd_table5/smoke_accuracy.png", model]) == []


def test_the_size_is_that_of_what_is_wanted(known):
    ids = {run.recipe for run in shown_runs(known, [f"{TABLE5}.md"])}
    assert ids == {run.recipe for run in known.runs["fedsdd_table5", "smoke"]}
    sizes = {describe_size(known, shown_runs(known, names)) for names in ([], [f"{TABLE5}.md"])}
    assert len(sizes) == 2


def test_the_size_of_a_recipes_file_is_that_of_its_runs(known):
    recipe = fedavg(known)
    runs = shown_runs(known, [f"results/training/{training_id(recipe)}/recipe.yaml"])
    assert runs
    assert len(runs) < len(known.runs["quickstart", "default"])


def test_what_follows_from_settings_trains_nothing(known):
    assert shown_runs(known, ["results/properties/fedsdd_table5/smoke.md"]) == []
