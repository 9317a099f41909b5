import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter
from tests.shared.experiments import OF_ALL_STAGES, experiments

from fedstage.errors import FedstageError
from fedstage.experiments import library
from fedstage.experiments.catalogue import (
    find,
    load_catalogue,
    metrics_of,
    trained_runs,
)
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.listing import listing
from fedstage.experiments.stage_rules import state_rounds
from fedstage.plan import data_files
from fedstage.plan.graph import behind, name_of
from fedstage.plan.members import evaluated_name, parse_evaluated
from fedstage.plan.runs import split_target
from fedstage.plan.training_folder import training_id
from fedstage.plan.unfederated import local_folder
from fedstage.results.runs_file import ExperimentRuns
from fedstage.settings.base import WeightsFile
from fedstage.settings.recipes import Recipe
from fedstage.storage.yaml_files import load_yaml


def partition_id(recipe):
    return name_of(data_files.clients_table(recipe))


def participation_id(recipe):
    return name_of(data_files.participation_table(recipe, 1))


REPOSITORY = Path(__file__).parents[3]
WORKFLOW = REPOSITORY / "workflow"
BASE = {
    "data": "digits",
    "clients": 10,
    "partition": {"dirichlet": {"alpha": 0.1}},
    "participants": 4,
    "model": "cnn_small",
    "rounds": 8,
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
}
METHODS = ["local_only", "fedavg", "fedprox", "scaffold", "feddf", "fed_ensemble", "fedsdd"]


def experiment(**changes):
    return {
        "title": "A table",
        "base": BASE,
        "grid": {"method": [*METHODS, "centralised"], "seed": [0, 1]},
        "scales": {"default": None, "mini": {"base": {"rounds": 3}, "grid": {"seed": [0]}}},
        **changes,
    }


def load(tmp_path, files=None, **changes):
    """Load a configuration with the shipped methods and the given experiment files."""
    folder = tmp_path / "workflow"
    (folder / "experiments").mkdir(parents=True)
    (folder / "methods.yaml").write_text((REPOSITORY / "workflow/methods.yaml").read_text())
    for name, content in (files or {}).items():
        (folder / "experiments" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    config = {"targets": ["a"], "experiments": {"a": experiment()}, **changes}
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


def test_settings_of_all_folders_are_known(catalogue):
    for run in every_run(catalogue):
        for job in behind([metrics_of(run)]):
            assert catalogue.folders[job.folder] == job.config
            assert job.stage.job(job.config, *job.place) is job


def test_public_data_sets_are_known_and_unread_ones_are_not(catalogue):
    assert {data.name for data in named(catalogue, "data").values()} == {
        "cifar10", "digits", "svhn",
    }  # fmt: skip


def test_data_that_no_recipe_reads_is_not_there(tmp_path):
    unread = experiment(base={**BASE, "public": "svhn"}, grid={"method": ["fedavg"], "seed": [0]})
    catalogue = load(tmp_path, experiments={"a": unread})
    assert [data.name for data in named(catalogue, "data").values()] == ["digits"]


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
    files = {path.stem for path in (REPOSITORY / "workflow").glob("**/experiments/*.yaml")}
    assert {*catalogue.experiments, *uncounted} == {*config["experiments"], *files}
    for experiment, scale in catalogue.runs:
        assert describe_runs(catalogue, experiment, scale)["runs"]
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


def test_unknown_target_lists_the_known_ones(tmp_path):
    with pytest.raises(FedstageError) as caught:
        load(tmp_path, targets=["a", "a/maxi"])
    assert str(caught.value) == (
        "config.yaml: targets = 'a/maxi': unknown; use one of a, a/mini; did you mean 'a/mini'?"
    )


def test_many_targets_are_not_listed():
    with pytest.raises(FedstageError) as caught:
        load_catalogue({"targets": ["fedsdd_tabel5"]}, WORKFLOW, "")
    assert str(caught.value) == (
        "config.yaml: targets = 'fedsdd_tabel5': unknown; see `fedstage list experiments`; "
        "did you mean 'fedsdd_table5'?"
    )


def test_of_a_known_experiment_the_scales_are_listed():
    told = r"'fedsdd_table5/tiny': unknown; use one of (fedsdd_table5/\w+(, )?){3}"
    with pytest.raises(FedstageError, match=told):
        load_catalogue({"targets": ["fedsdd_table5/tiny"]}, WORKFLOW, "")


def test_an_unknown_target_is_found_before_experiments_are_resolved(tmp_path):
    with pytest.raises(FedstageError, match="targets = 'nonsuch': unknown"):
        loaded(tmp_path, "", ["broken", "nonsuch"])


def test_targets_may_be_files_of_the_folder(tmp_path):
    catalogue = load(tmp_path, {"b": experiment()}, targets=["b/mini", "a"])
    assert catalogue.config.targets == ["b/mini", "a"]


def test_unknown_folder_says_what_it_is(catalogue):
    folder = next(iter(catalogue.folders))
    assert find(catalogue.folders, folder, "folder") is catalogue.folders[folder]
    with pytest.raises(FedstageError, match="folder digits-x: no experiment of this configuration"):
        find(catalogue.folders, "digits-x", "folder")


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
        f"{local_folder(local.recipe)}/metrics/fp32/each_client-test-rounds_0003.parquet"
    )


def test_names_of_metrics_fit_the_workflow(catalogue):
    # The constraints of the wildcards in workflow/rules/evaluation.smk.
    federated = r"results/training/[^/]+/metrics/\w+-(test|validation)/rounds_\d{4}_every_\d+"
    local = (
        r"results/local_models/[^/]+/metrics/fp32/(each_client|pooled)-(test|validation)"
        r"-rounds_\d{4}"
    )
    for run in every_run(catalogue):
        assert re.fullmatch(rf"(?:{federated}|{local})\.parquet", metrics_of(run))


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


def test_role_of_unfederated_models_is_in_the_name_of_their_metrics(tmp_path):
    base = {**BASE, "role": "validation", "validation": 0.1}
    content = experiment(base=base, grid={"method": ["centralised"], "seed": [0]})
    (run,) = load(tmp_path, experiments={"a": content}).runs["a", "mini"]
    assert metrics_of(run).endswith("/metrics/fp32/pooled-validation-rounds_0003.parquet")


def test_description_of_runs_is_json_and_complete(tmp_path):
    table = {"rows": ["method"], "columns": ["partition.alpha"]}
    grid = {"method": ["fedavg", "local_only"], "partition.alpha": [0.1, 1.0], "seed": [0]}
    catalogue = load(tmp_path, experiments={"a": experiment(table=table, grid=grid)})
    described = json.loads(json.dumps(describe_runs(catalogue, "a", "mini")))
    runs = described.pop("runs")
    assert described == {
        "experiment": "a",
        "scale": "mini",
        "title": "A table",
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


@pytest.mark.parametrize(
    ("seeds", "given", "bands"),
    [
        (4, None, "deviation"),
        (5, None, "interval"),
        (4, "interval", "interval"),
        (5, "none", "none"),
    ],
)
def test_bands_are_intervals_from_five_seeds_on_unless_given(tmp_path, seeds, given, bands):
    grid = {"method": ["fedavg", "local_only"], "seed": list(range(seeds))}
    content = experiment(grid=grid, figures={"bands": given} if given else {})
    described = describe_runs(load(tmp_path, experiments={"a": content}), "a", "default")
    assert described["bands"] == bands


def kept_rounds(catalogue):
    """Return the rounds whose state is kept, by the seeds of runs of SCAFFOLD."""
    runs = [run for run in every_run(catalogue) if run.axes["method"] == "scaffold"]
    kept = state_rounds(catalogue)
    return {run.recipe.seed: kept[training_id(run.recipe)] for run in runs}


def test_state_is_kept_in_regular_rounds_and_in_the_last_of_each_run(tmp_path):
    assert kept_rounds(load(tmp_path, state_every=4)) == {0: [3, 4, 8], 1: [4, 8]}


def test_state_is_kept_in_last_rounds_only_where_runs_are_short(tmp_path):
    assert kept_rounds(load(tmp_path)) == {0: [3, 8], 1: [8]}


def test_state_that_is_kept_does_not_depend_on_other_runs(tmp_path):
    other = experiment(base={**BASE, "rounds": 5}, grid={"method": ["scaffold"], "seed": [5]})
    together = load(tmp_path, {"b": other}, targets=["a", "b"])
    assert kept_rounds(together) == {0: [3, 8], 1: [8], 5: [5]}


def test_catalogue_can_be_loaded_twice_with_the_same_result(tmp_path):
    folder = tmp_path / "workflow"
    one = load(tmp_path)
    other = load_catalogue({"targets": ["a"], "experiments": {"a": experiment()}}, folder)
    assert one == other
    assert one.folders != {}


# --- the workflow ---------------------------------------------------------------------------------

HEAVY = "'torch', 'torchvision', 'numpy', 'pandas', 'pyarrow', 'matplotlib', 'sklearn', 'scipy'"


def loaded_by(code):
    report = f"{code}\nimport sys; print(sorted({{{HEAVY}}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    return done.stdout.strip()


def test_catalogue_imports_no_heavy_package():
    assert loaded_by("import fedstage.experiments.catalogue") == "[]"


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
        (["fedsdd_table2/*"], [f"fedsdd_table2/{s}" for s in ("smoke", "mini", "study", "paper")]),
        (["fedsdd_table8/mini", "fedsdd_table8/m*"], ["fedsdd_table8/mini"]),
    ],
)
def test_targets_can_be_patterns(targets, found):
    listed = load_catalogue({"targets": targets}, WORKFLOW, "").config.targets
    others = ("fedsdd_table1/", "fedsdd_table3/")  # of properties and of seconds
    assert sorted(name for name in listed if not name.startswith(others)) == sorted(found)


def test_a_pattern_names_something():
    told = r"targets = 'fedsdd_t\*/nonsuch': unknown; see `fedstage list experiments`"
    with pytest.raises(FedstageError, match=told):
        load_catalogue({"targets": ["fedsdd_t*/nonsuch"]}, WORKFLOW, "")


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
    config = {"targets": [*targets], "experiments": {"a": experiment()}}
    return load_catalogue(config, folder, arguments)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("--cores 2", ["a"]),
        ("results/tables/b/mini.md -n", ["a", "b"]),
        ("results/figures/like_b/mini_accuracy.png", ["a", "like_b"]),
        ("--target-jobs tables:experiment=b,scale=mini", ["a", "b"]),
        ("--directory broken", ["a"]),
        ("b", ["a", "b"]),
        ("--cores 2 like_b/mini", ["a", "like_b"]),
    ],
)
def test_an_experiment_is_read_when_it_is_named(tmp_path, arguments, names):
    assert list(loaded(tmp_path, arguments).experiments) == names


def test_targets_name_experiments_by_patterns(tmp_path):
    found = loaded(tmp_path, "", ["*b/mini"])
    assert list(found.experiments) == ["b", "like_b"]
    assert found.config.targets == ["b/mini", "like_b/mini"]


def test_a_broken_experiment_blocks_only_what_needs_it(tmp_path, capsys):
    found = loaded(tmp_path, "results/training/nonsuch/round_0001/group_0/aggregated.safetensors")
    assert list(found.experiments) == ["a", "b", "like_b"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fedstage: a broken experiment is left out, as nothing here needs it: ")
    assert "broken.yaml: title = 1: " in line
    with pytest.raises(FedstageError, match="unknown; use one of a"):
        loaded(tmp_path, "", ["nonsuch"])


def test_experiments_are_listed_without_broken_ones(tmp_path, capsys):
    loaded(tmp_path, "")
    (tmp_path / "config.yaml").write_text("targets: [b]")
    _, rows = listing("experiments", None, tmp_path / "config.yaml", tmp_path / "workflow")
    assert [row[0] for row in rows] == ["b", "like_b"]
    assert "broken.yaml: title = 1: " in capsys.readouterr().err


def test_a_broken_experiment_does_not_block_cells_and_bases_of_others(tmp_path):
    loaded(tmp_path, "")
    cells = [{"at": {"method": "fedavg"}, "settings": {"rounds": 3}}]
    with_cells = experiment(scales={"default": None, "mini": {"cells": cells}})
    path = tmp_path / "workflow/experiments/b.yaml"
    path.write_text(yaml.safe_dump(with_cells))
    assert list(loaded(tmp_path, "b").experiments) == ["a", "b"]
    lost = experiment(base={**BASE, "local": "fedavg"}, grid={"method": ["fedprox"], "seed": [0]})
    path.write_text(yaml.safe_dump(lost))
    assert list(loaded(tmp_path, "b").experiments) == ["a", "b"]


@pytest.mark.parametrize("arguments", ["results/tables/broken/default.md", "broken", None])
def test_an_experiment_that_is_read_must_be_valid(tmp_path, arguments):
    with pytest.raises(FedstageError, match=r"broken.yaml: title = 1: "):
        loaded(tmp_path, arguments)


def test_a_folder_of_an_unnamed_experiment_makes_all_be_read(tmp_path):
    (tmp_path / "workflow/experiments").mkdir(parents=True)
    (tmp_path / "workflow/methods.yaml").write_text((WORKFLOW / "methods.yaml").read_text())
    other = experiment(base={**BASE, "clients": 12})
    (tmp_path / "workflow/experiments/b.yaml").write_text(yaml.safe_dump(other))
    config = {"targets": ["a"], "experiments": {"a": experiment()}}
    every = load_catalogue(config, tmp_path / "workflow")
    own = load_catalogue(config, tmp_path / "workflow", "")
    recipes = named(own, "training")
    foreign = next(name for name in named(every, "training") if name not in recipes)
    for name, names in {next(iter(recipes)): ["a"], foreign: ["a", "b"]}.items():
        argument = f"results/training/{name}/round_0001/group_0/aggregated.safetensors"
        assert list(load_catalogue(config, tmp_path / "workflow", argument).experiments) == names


def test_one_more_table_costs_a_call_that_does_not_name_it_nothing(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(library, "load_yaml", lambda path: read.append(path) or load_yaml(path))
    loaded(tmp_path, "results/tables/a/mini.md")
    assert read == []
    loaded(tmp_path, "results/tables/like_b/mini.md")
    assert [path.stem for path in read] == ["like_b", "b"]


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


@pytest.mark.parametrize("name", ["parts.v2", "My Exp"])
def test_a_bad_name_blocks_only_what_needs_it(tmp_path, capsys, name):
    loaded(tmp_path, "")
    path = tmp_path / "workflow/experiments" / f"{name}.yaml"
    path.write_text(yaml.safe_dump(experiment()))
    foreign = "results/training/nonsuch/round_0001/group_0/aggregated.safetensors"
    assert list(loaded(tmp_path, foreign).experiments) == ["a", "b", "like_b"]
    told = f"name = '{name}': must consist of letters, digits, _ and -"
    assert told in capsys.readouterr().err
    for argument in (name, f"{name}/mini"):
        with pytest.raises(FedstageError, match=re.escape(told)):
            loaded(tmp_path, shlex.join([argument]))


def test_two_files_of_one_name_block_only_what_needs_them(tmp_path):
    loaded(tmp_path, "")
    other = tmp_path / "workflow/papers/x/experiments"
    other.mkdir(parents=True)
    (other / "b.yaml").write_text(yaml.safe_dump(experiment()))
    assert list(loaded(tmp_path, "").experiments) == ["a"]
    with pytest.raises(FedstageError, match=r"experiments\.b: is also .*; rename one of them"):
        loaded(tmp_path, "b")


@pytest.mark.parametrize("name", ["$(touch x)", "a b", "a;b", "`x`", "a\nb"])
def test_weights_of_a_name_that_may_not_stand_in_a_command_are_refused(name):
    weights = TypeAdapter(WeightsFile)
    with pytest.raises(ValueError, match="String should match pattern"):
        weights.validate_python(f"results/{name}.safetensors")
    assert weights.validate_python("results/training/a-0.1_B/b.safetensors")
