"""What still contains a client that an aggregator has forgotten."""

import pytest
import yaml

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.unlearning import forgets, is_among, traces_of
from fedstage.plan import data_files, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.training_folder import training_id
from fedstage.stages.forgetting import forgetting
from fedstage.storage.files import save_json

ONE_SHOT = {"training": "one_shot", "rounds": 1}
SERVER = {"steps": 2, "batch_size": 8, "learning_rate": 0.1}
METHODS = {
    "fens": ONE_SHOT | {"aggregator": "voting"},
    "fedkd": ONE_SHOT | {"aggregator": "weighted", "distillation": "l1", "server": SERVER},
    "whole": ONE_SHOT | {"aggregator": "averaging", "local_fraction": 1.0},
    "without_2": ONE_SHOT | {"aggregator": "voting", "forget": [2]},
    "without_both": ONE_SHOT | {"aggregator": "voting", "forget": [2, 0]},
    "rough": ONE_SHOT | {"aggregator": "averaging", "quantisation": "int8"},
    "fedavg": {"local": "fedavg"},
    "centralised": {"training": "pooled"},
}
BASE = {
    "data": "digits",
    "clients": 4,
    "partition": {"dirichlet": {"alpha": 1.0}},
    "validation": 0.1,
    "aggregator_fraction": 0.2,
    "participants": 2,
    "model": "logistic_regression",
    "rounds": 1,
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
    "seed": 0,
}


def experiment(methods, **changes):
    return {
        "title": "Forgetting",
        "base": BASE | changes,
        "methods": {name: METHODS[name] for name in methods},
        "grid": {"method": methods},
        "scales": {"default": None},
    }


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workflow")
    (folder / "methods.yaml").write_text(yaml.safe_dump({"fedavg": {"local": "fedavg"}}))
    experiments = {
        "a": experiment(["without_2"]),
        "b": experiment(["without_2", "without_both"]),
        "others": experiment(["fens", "rough", "fedkd", "whole", "fedavg", "centralised"]),
        "another_seed": experiment(["fens", "whole", "fedavg"], seed=1),
    }
    return load_catalogue({"targets": ["a"], "experiments": experiments}, folder)


def recipe_of(catalogue, experiment, method):
    (run,) = [r for r in catalogue.runs[experiment, "default"] if r.axes["method"] == method]
    return run.recipe


def found(catalogue, experiment="a", client=2):
    traces = traces_of(catalogue, experiment, "default")
    assert len(traces) == len({tuple(trace.values()) for trace in traces})
    listed = {}
    for trace in traces:
        if trace["client"] == client:
            listed.setdefault(trace["contains"], set()).add(trace["files"])
    return listed


def test_only_experiments_that_forget_have_traces(catalogue):
    forgetful = [name for name in ("a", "b", "others") if forgets(catalogue, name, "default")]
    assert forgetful == ["a", "b"]
    assert traces_of(catalogue, "others", "default") == []


def test_experiments_that_no_target_names_are_looked_at_too(tmp_path):
    (tmp_path / "methods.yaml").write_text(yaml.safe_dump({"fedavg": {"local": "fedavg"}}))
    experiments = {"a": experiment(["without_2"]), "others": experiment(["fens", "fedavg"])}
    config = {"targets": ["a"], "experiments": experiments}
    named = load_catalogue(config, tmp_path, "")
    assert named.experiments.keys() == {"a"}
    assert "results/tables/others/default.*" in found(named)["numbers of runs with it"]


def test_models_and_logits_of_the_client_are_listed_on_both_parts_of_its_samples(catalogue):
    locals_ = [local_recipe(recipe_of(catalogue, "others", name)) for name in ("fens", "whole")]
    traces = found(catalogue)
    assert traces["its model"] == {unfederated.local_models(local)[2] for local in locals_}
    said = {f"{unfederated.local_folder(one)}/logits/*/client_2-*.safetensors" for one in locals_}
    assert traces["what its model says"] == said  # in any precision
    rough = unfederated.members_quantised(recipe_of(catalogue, "others", "rough"))
    assert any(is_among(rough[2], files) for files in traces["its quantised model"])
    assert not any(is_among(rough[1], files) for files in traces["its quantised model"])
    about = {path.rpartition("/")[2] for path in traces["what models say about its samples"]}
    assert about == {"client_*-aggregator.safetensors", "client_*-validation.safetensors"}
    assert traces["learnt from its samples"] == {
        unfederated.local_models(recipe_of(catalogue, "others", "centralised"))[0]
    }


def test_aggregators_and_students_that_have_the_client_are_listed(catalogue):
    rows = ("fens", "rough", "fedkd", "whole")
    recipes = [recipe_of(catalogue, "others", name) for name in rows]
    expected = {shot.aggregator(recipe).job.folder for recipe in recipes}
    expected.add(shot.student_file(recipe_of(catalogue, "others", "fedkd")).job.folder)
    assert found(catalogue)["learnt from its model and samples"] == expected
    # Client 0 is still in the aggregator that has forgotten client 2 only.
    other = shot.aggregator(recipe_of(catalogue, "a", "without_2")).job.folder
    assert found(catalogue, "b", 0)["learnt from its model and samples"] == expected | {other}


def test_rounds_of_the_same_clients_are_listed(catalogue):
    recipe = recipe_of(catalogue, "others", "fedavg")
    expected = {f"results/training/{training_id(recipe)}"}
    assert found(catalogue)["rounds that it may be in"] == expected


def test_nothing_of_another_seed_is_listed(catalogue):
    other = unfederated.local_folder(local_recipe(recipe_of(catalogue, "another_seed", "fens")))
    text = str(traces_of(catalogue, "b", "default"))
    assert "-seed1-" not in text
    assert other not in text


def test_the_table_has_a_row_a_trace(catalogue, tmp_path):
    traces = traces_of(catalogue, "a", "default")
    source, markdown, csv = (tmp_path / name for name in ("t.json", "t.md", "t.csv"))
    about = {"experiment": "a", "scale": "default", "title": "Forgetting"}
    save_json(source, about | {"traces": traces})
    forgetting(traces=source, markdown=markdown, csv=csv)
    assert len(csv.read_text().splitlines()) == 1 + len(traces)
    assert all(f"`{trace['files']}`" in markdown.read_text() for trace in traces)
    save_json(source, about | {"traces": []})
    with pytest.raises(FedstageError, match=r"t\.json: traces = \[\]: must have at least 1 item"):
        forgetting(traces=source, markdown=markdown, csv=csv)


# --- natural clients ------------------------------------------------------------------------------

IMAGES = {"folder": "patients", "client_column": "centre", "held_out": 10, "server_validation": 10}
NATURAL = {"data": {"parquet": IMAGES}, "partition": "natural"}
SHARED = {
    "data": {"parquet": IMAGES | {"split_seed": 5}},
    "partition": {"dirichlet": {"alpha": 1.0}},
}
PUBLIC = {
    "public": {"parquet": IMAGES | {"held_out": 0}},
    "partition": {"dirichlet": {"alpha": 1.0}},
}


@pytest.fixture(scope="module")
def natural(tmp_path_factory):
    folder = tmp_path_factory.mktemp("natural")
    (folder / "methods.yaml").write_text(yaml.safe_dump({"fedavg": {"local": "fedavg"}}))
    taught = METHODS["fedkd"] | {"forget": [2]}
    METHODS["taught_without_2"] = taught
    METHODS["taught"] = METHODS["fedkd"]
    experiments = {
        "a": experiment(["without_2", "taught_without_2"], **NATURAL),
        "another_seed": experiment(["fens", "fedavg"], seed=1, **NATURAL),
        "other_shares": experiment(["fens", "fedavg"], seed=2, **SHARED),
        "public": experiment(["taught", "fens"], seed=3, **PUBLIC),
        "other_data": experiment(["fens", "fedavg"], seed=4),
    }
    return load_catalogue({"targets": ["a"], "experiments": experiments}, folder)


def names(traces, **of):
    return {one["files"] for one in traces if of.items() <= one.items()}


def test_all_parts_of_its_data_set_may_have_samples_of_a_natural_client(natural):
    files = {files for listed in found(natural).values() for files in listed}
    (data,) = {recipe_of(natural, "a", "without_2").data}
    parts = ("train", "test", "held_out", "server_validation", "info")
    assert {data_files.data_file(data, part) for part in parts} <= files
    other = recipe_of(natural, "other_shares", "fens").data
    assert data_files.data_file(other, "train") in files
    digits = recipe_of(natural, "other_data", "fens").data
    assert data_files.data_file(digits, "train") not in files


def test_students_learn_from_samples_set_aside(natural):
    listed = found(natural)["learnt from samples set aside, also its own"]
    taught, alone = (
        shot.one_shot_metrics_file(recipe_of(natural, "a", f"{name}without_2"), "test").job.folder
        for name in ("taught_", "")
    )
    assert listed == {taught}
    metrics = found(natural)["scores weighted by its label counts"]
    assert f"{alone}/metrics" in metrics


def test_models_of_other_seeds_are_those_of_the_same_natural_client(natural):
    traces = found(natural)
    other = local_recipe(recipe_of(natural, "another_seed", "fens"))
    assert unfederated.local_models(other)[2] in traces["its model"]
    assert unfederated.local_models(other)[1] not in traces["its model"]
    rounds = f"results/training/{training_id(recipe_of(natural, 'another_seed', 'fedavg'))}"
    assert rounds in traces["rounds that it may be in"]
    assert data_files.label_histogram(other) in traces["its label counts"]


def test_other_shares_and_public_samples_of_the_same_files_have_it_too(natural):
    traces = found(natural)
    shares = local_recipe(recipe_of(natural, "other_shares", "fens"))
    assert unfederated.local_folder(shares) in traces["learnt from its samples in other shares"]
    taught = shot.student_file(recipe_of(natural, "public", "taught")).job.folder
    assert traces["learnt from its samples as public ones"] == {taught}


def test_tables_of_runs_with_it_are_listed_and_no_others(natural, catalogue):
    listed = found(natural)["numbers of runs with it"]
    for name in ("a", "another_seed", "other_shares", "public"):
        assert {f"results/tables/{name}/default.*", f"results/figures/{name}/default_*"} <= listed
    assert "results/tables/other_data/default.*" not in listed
    assert "results/tables/another_seed/default.*" not in str(found(catalogue))


def test_recipes_that_the_configuration_has_no_more_are_listed(natural, catalogue):
    stored = recipe_of(natural, "another_seed", "fedavg").model_copy(update={"seed": 77})
    traces = traces_of(natural, "a", "default", {f"results/training/{training_id(stored)}": stored})
    assert f"results/training/{training_id(stored)}" in names(traces, client=2)
    assert f"results/training/{training_id(stored)}" not in names(
        traces_of(catalogue, "a", "default", {f"results/training/{training_id(stored)}": stored})
    )


def test_what_starts_from_a_model_with_it_is_listed(natural):
    folder = training_id(recipe_of(natural, "another_seed", "fedavg"))
    start = f"results/training/{folder}/x.safetensors"
    later = recipe_of(natural, "other_data", "fedavg").model_copy(update={"start": start})
    listed = names(
        traces_of(natural, "a", "default", {f"results/training/{training_id(later)}": later})
    )
    assert f"results/training/{training_id(later)}" in listed
