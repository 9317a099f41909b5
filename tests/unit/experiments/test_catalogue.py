import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter
from tests.shared import settings
from tests.shared.experiments import OF_ALL_STAGES, experiments

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import (
    load_catalogue,
    metrics_of,
    trained_runs,
)
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.plan import data_files
from fedstage.plan.graph import name_of
from fedstage.plan.members import evaluated_name, parse_evaluated
from fedstage.plan.runs import split_target
from fedstage.plan.training_folder import training_id
from fedstage.plan.unfederated import local_models
from fedstage.settings.base import WeightsFile
from fedstage.settings.recipes import Recipe


def partition_id(recipe):
    return name_of(data_files.clients_table(recipe))


def participation_id(recipe):
    return name_of(data_files.participation_table(recipe, 1))


REPOSITORY = Path(__file__).parents[3]
WORKFLOW = REPOSITORY / "workflow"
BASE = settings.federated(
    clients=10,
    partition={"dirichlet": {"alpha": 0.1}},
    participants=4,
    rounds=8,
    server={"steps": 20, "batch_size": 16, "learning_rate": 0.01},
)
METHODS = ["local_only", "fedavg", "fedprox", "scaffold", "feddf", "fed_ensemble", "fedsdd"]


def experiment(**changes):
    grid = {"method": [*METHODS, "centralised"], "seed": [0, 1]}
    scales = {"default": None, "mini": {"base": {"rounds": 3}, "grid": {"seed": [0]}}}
    return settings.experiment(base=BASE, grid=grid, scales=scales) | changes


def load(tmp_path, files=None, **changes):
    """Load a configuration with the shipped methods and the given experiment files."""
    folder = tmp_path / "workflow"
    (folder / "experiments").mkdir(parents=True)
    (folder / "methods.yaml").write_text((REPOSITORY / "workflow/methods.yaml").read_text())
    for name, content in (files or {}).items():
        (folder / "experiments" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    config = settings.config(a=experiment()) | changes
    return load_catalogue(config, folder)


@pytest.fixture
def catalogue(tmp_path):
    public = {**BASE, "data": "cifar10", "public": {"svhn": {"train_size": 100}}, "rounds": 5}
    other = experiment(base=public, grid={"method": ["feddf"], "seed": [5]})
    return load(tmp_path, {"b": other})


def every_run(catalogue):
    return [run for runs in catalogue.runs.values() for run in runs]


def named(catalogue, kind):
    """Return the settings behind the names of folders of a kind."""
    return {path.split("/")[2]: found for path, found in catalogue.folders.items()
            if path.split("/")[1] == kind}  # fmt: skip


def test_runs_of_every_experiment_and_scale_in_the_order_of_the_grid(catalogue):
    assert list(catalogue.runs) == [
        ("a", "default"),
        ("a", "mini"),
        ("b", "default"),
        ("b", "mini"),
    ]
    axes = [tuple(run.axes.values()) for run in catalogue.runs["a", "default"]]
    assert axes == [(method, seed) for method in [*METHODS, "centralised"] for seed in (0, 1)]
    assert len(catalogue.runs["a", "mini"]) == 8


# A job may see one target only, and must find the settings behind the name of each folder.


def test_methods_share_what_they_can(tmp_path):
    catalogue = load(tmp_path)
    runs = [run for run in catalogue.runs["a", "mini"] if isinstance(run.recipe, Recipe)]
    assert len(runs) == 6
    assert len({partition_id(run.recipe) for run in catalogue.runs["a", "mini"]}) == 1
    assert len({participation_id(run.recipe) for run in runs}) == 1
    # The undistilled recipes of feddf and fedsdd are fedavg and fed_ensemble.
    recipes = {name for name, recipe in named(catalogue, "training").items() if recipe.seed == 0}
    assert recipes == {training_id(run.recipe) for run in runs}


@pytest.mark.slow
def test_shipped_configuration_and_experiments_are_valid():
    config = yaml.safe_load((REPOSITORY / "config.yaml").read_text())
    catalogue, uncounted = experiments()
    places = "experiments/*.yaml", "papers/*/experiments/*.yaml"
    files = {path.stem for at in places for path in (REPOSITORY / "workflow").glob(at)}
    assert {*catalogue.experiments, *uncounted} == {*config["experiments"], *files}
    assert all(catalogue.runs.values())
    if uncounted:
        pytest.skip("all others are valid: " + "; ".join(uncounted.values()))


# --- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("quickstart", ("quickstart", "default")),
        ("table/mini", ("table", "mini")),
        ("table/", ("table", "default")),
    ],
)
def test_target_names_an_experiment_and_a_scale(target, expected):
    assert split_target(target) == expected


def test_targets_may_be_files_of_the_folder(tmp_path):
    catalogue = load(tmp_path, {"b": experiment()}, targets=["b/mini", "a"])
    assert catalogue.config.targets == ["b/mini", "a"]


# --- runs and rounds ------------------------------------------------------------------------------


def run_of(catalogue, method, scale="mini"):
    (run,) = [r for r in catalogue.runs["a", scale] if r.axes == {"method": method, "seed": 0}]
    return run


def test_metrics_of_runs(catalogue):
    fedavg, local = run_of(catalogue, "fedavg"), run_of(catalogue, "local_only")
    ensemble = run_of(catalogue, "fed_ensemble")
    assert metrics_of(fedavg) == (
        f"results/training/{training_id(fedavg.recipe)}/metrics/global_model-test/"
        "rounds_0003_every_1.parquet"
    )
    assert metrics_of(ensemble) == (
        f"results/training/{training_id(ensemble.recipe)}/metrics/aggregated_1-test/"
        "rounds_0003_every_1.parquet"
    )
    assert metrics_of(local) == (
        f"{local_models(local.recipe)[0].job.folder}/metrics/fp32/each_client-test-rounds_0003.parquet"
    )


@pytest.mark.parametrize(
    ("evaluate", "name"),
    [
        ("global_model", "global_model"),
        ("clients", "clients"),
        ({"clients": {"weights": "samples"}}, "clients_by_samples"),
        ({"aggregated": {"checkpoints": 3}}, "aggregated_3"),
    ],
    ids=str,
)
def test_what_is_evaluated_is_in_the_name_of_the_metrics(tmp_path, evaluate, name):
    base = {**BASE, "evaluate": evaluate, "role": "validation", "validation": 0.1}
    content = experiment(base=base, grid={"seed": [0]})
    (run,) = load(tmp_path, experiments={"a": content}).runs["a", "mini"]
    assert f"/metrics/{name}-validation/" in metrics_of(run)
    if name != "global_model":
        assert parse_evaluated(name) == run.length.evaluate
        assert evaluated_name(parse_evaluated(name)) == name


def test_description_of_runs_is_json_and_complete(tmp_path):
    table = {"rows": ["method"], "columns": ["partition.alpha"]}
    grid = {"method": ["fedavg", "local_only"], "partition.alpha": [0.1, 1.0], "seed": [0]}
    catalogue = load(tmp_path, experiments={"a": experiment(table=table, grid=grid)})
    described = json.loads(json.dumps(describe_runs(catalogue, "a", "mini")))
    runs = described.pop("runs")
    assert described == {
        "experiment": "a",
        "scale": "mini",
        "title": "The title",
        "rows": ["method"],
        "columns": ["partition.alpha"],
        "metric": "top1_accuracy",
        "also": [],
        "bands": "deviation",
        "simulation": {},
        "labels": {"fedavg": "FedAvg", "local_only": "Local training"},
        "styles": {
            "fedavg": {"colour": "blue", "marker": "circle"},
            "local_only": {"colour": "grey", "marker": "square"},
        },
    }
    assert [run["settings"] for run in runs] == [
        {"method": method, "seed": 0, "partition.alpha": alpha}
        for method in grid["method"]
        for alpha in grid["partition.alpha"]
    ]
    for description, run in zip(runs, catalogue.runs["a", "mini"], strict=True):
        assert description["metrics"] == metrics_of(run)
        assert description["partition"] == data_files.label_histogram(run.recipe)
    read = ExperimentRuns.model_validate(described | {"runs": runs})
    for described_run, run in zip(read.runs, catalogue.runs["a", "mini"], strict=True):
        ((part,),) = (candidate.parts for candidate in described_run.candidates)
        assert (part.recipe, part.length) == (run.recipe, run.length)


# --- the workflow ---------------------------------------------------------------------------------

HEAVY = "'torch', 'torchvision', 'numpy', 'pandas', 'pyarrow', 'matplotlib', 'sklearn', 'scipy'"


def loaded_by(code):
    report = f"{code}\nimport sys; print(sorted({{{HEAVY}}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_parsing_the_workflow_imports_no_heavy_package():
    rules = "".join(path.read_text() for path in (REPOSITORY / "workflow/rules").glob("*.smk"))
    imports = re.findall(r"^from fedstage.*$", rules, flags=re.MULTILINE)
    assert len(imports) >= 5
    asked = " ".join(OF_ALL_STAGES)
    code = "import yaml, pathlib\n" + "\n".join(imports) + "\n"
    code += "config = yaml.safe_load(pathlib.Path('config.yaml').read_text())\n"
    code += f"catalogue = load_catalogue(config, pathlib.Path('workflow'), '{asked}')\n"
    code += "smallest = [key for key in catalogue.runs if key[1] in ('default', 'smoke')]\n"
    code += "[describe(catalogue, *key, 'runs') for key in smallest]"
    assert loaded_by(code) == "[]"


@pytest.mark.parametrize(
    ("targets", "found"),
    [
        (["fedsdd_table?/smoke"], [f"fedsdd_table{n}/smoke" for n in (2, 4, 5, 6, 7, 8, 9)]),
        (
            ["fedsdd_table2/*"],
            [f"fedsdd_table2/{s}" for s in ("smoke", "mini", "study", "converged", "paper")],
        ),
        (["fedsdd_table8/mini", "fedsdd_table8/m*"], ["fedsdd_table8/mini"]),
    ],
)
def test_targets_can_be_patterns(targets, found):
    listed = load_catalogue({"targets": targets}, WORKFLOW, "").config.targets
    others = ("fedsdd_table1/", "fedsdd_table3/")  # of properties and of seconds
    assert sorted(name for name in listed if not name.startswith(others)) == sorted(found)


# --- what is read ---------------------------------------------------------------------------------


def loaded(tmp_path, arguments, targets=("a",)):
    """The experiments that are resolved; the file `broken` is not valid."""
    folder = tmp_path / "workflow"
    if not folder.exists():
        (folder / "experiments").mkdir(parents=True)
        (folder / "methods.yaml").write_text((REPOSITORY / "workflow/methods.yaml").read_text())
        grid = {"method": ["fedavg"], "seed": [0]}
        like = {"title": "Like b", "like": "b", "grid": grid, "scales": {"mini": None}}
        files = {"b": experiment(), "like_b": like}
        for name, content in (files | {"broken": {"title": 1}}).items():
            (folder / "experiments" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    config = settings.config(a=experiment()) | {"targets": [*targets]}
    return load_catalogue(config, folder, arguments)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("--cores 2", ["a"]),
        ("results/tables/b/mini.md -n", ["a", "b"]),
        ("results/figures/like_b/mini_accuracy.png", ["a", "like_b"]),
        ("--directory broken", ["a"]),
        ("b", ["a", "b"]),
        ("--cores 2 like_b/mini", ["a", "like_b"]),
    ],
)
def test_an_experiment_is_read_when_it_is_named(tmp_path, arguments, names):
    assert list(loaded(tmp_path, arguments).experiments) == names


def test_a_broken_experiment_blocks_only_what_needs_it(tmp_path, capsys):
    found = loaded(tmp_path, "results/training/nonsuch/round_0001/group_0/aggregated.safetensors")
    assert list(found.experiments) == ["a", "b", "like_b"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fedstage: a broken experiment is left out, as nothing here needs it: ")
    assert "broken.yaml: title = 1: " in line
    with pytest.raises(FedstageError, match="unknown; use one of a"):
        loaded(tmp_path, "", ["nonsuch"])


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "trained"),
    [
        (["table"], True),
        (["figures"], True),
        (["round_times"], True),
        (["retention"], True),
        (["properties", "simulation"], False),
        (["simulation", "table"], True),
    ],
)
def test_runs_are_trained_for_results_that_read_metrics(tmp_path, results, trained):
    grid = {"method": ["fedavg", "fed_ensemble"], "seed": [0, 1]}
    catalogue = load(tmp_path, {"b": experiment(grid=grid, results=results)})
    found = trained_runs(catalogue, "b/mini")
    assert found == (catalogue.runs["b", "mini"] if trained else [])
    assert trained_runs(catalogue, "a") == catalogue.runs["a", "default"]


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "a;b", "ä", "a.b", "-n\nb"])
def test_a_file_of_a_name_that_may_not_stand_in_a_command_is_refused(tmp_path, name):
    loaded(tmp_path, "")
    content = yaml.safe_dump(experiment())
    (tmp_path / "workflow/experiments" / f"{name}.yaml").write_text(content)
    assert list(loaded(tmp_path, "--cores 2").experiments) == ["a"]
    with pytest.raises(FedstageError, match=r"name = .*: must consist of letters, digits, _ and -"):
        loaded(tmp_path, "", [name])


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "a;b", "`x`", "a\nb"])
def test_weights_of_a_name_that_may_not_stand_in_a_command_are_refused(name):
    weights = TypeAdapter(WeightsFile)
    with pytest.raises(ValueError, match="String should match pattern"):
        weights.validate_python(f"results/{name}.safetensors")
    assert weights.validate_python("results/training/a-0.1_B/b.safetensors")
