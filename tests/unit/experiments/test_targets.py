"""Which tables a call shows, and what an unknown target may mean."""

from pathlib import Path

import pytest

from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.targets import asked, explain_unknown, shown_results
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


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ([], [QUICKSTART, REPORT]),
        (["all"], [QUICKSTART, REPORT]),
        (["quickstart"], [QUICKSTART, REPORT]),
        ([f"{TABLE5}.csv"], [f"{TABLE5}.md"]),
        (["results/figures/fedsdd_table5/smoke_accuracy.png"], []),
    ],
)
def test_a_call_shows_the_tables_that_it_is_about(known, wanted, shown):
    assert shown_results(known, wanted) == shown


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ("-n", ["quickstart/default"]),
        (f"{TABLE5}.csv", ["fedsdd_table5/smoke"]),
        (f"{TABLE5}.csv all", ["fedsdd_table5/smoke", "quickstart/default"]),
        (
            """--config 'targets=["quickstart", "fedsdd_table5/smoke"]'""",
            ["fedsdd_table5/smoke", "quickstart/default"],
        ),
    ],
)
def test_a_call_is_about_what_it_names_and_else_about_the_targets(known, arguments, about):
    assert sorted(map("/".join, asked(known, arguments))) == about


def test_an_experiment_without_a_report_shows_none(known):
    shown = shown_results(known, ["fedsdd_table5/smoke"])
    assert f"{TABLE5}.md" in shown
    assert not any("/report/" in path for path in shown)


def test_a_model_shows_no_table_and_an_unknown_target_is_explained(known):
    runs = known.runs["quickstart", "default"]
    recipe = next(run.recipe for run in runs if run.axes["method"] == "fedavg")
    folder = f"results/training/{training_id(recipe)}"
    assert shown_results(known, [f"{folder}/round_0001/group_0/aggregated.safetensors"]) == []
    for target, told in (
        ("quickstrat", "quickstrat: no experiment, rule or file of this name; did you mean "
         "'quickstart'?"),
        ("results/tabels/quickstart/default.md", "results/tabels/quickstart/default.md: no "
         "experiment, rule or file of this name; did you mean "
         "'results/tables/quickstart/default.md'?"),
        ("results/training/nothing/x", "results/training/nothing: no experiment of this "
         "configuration has this folder"),
    ):  # fmt: skip
        assert explain_unknown(known, [target], lambda _: False) == told
