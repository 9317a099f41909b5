"""What still contains a client that an aggregator has forgotten."""

import pytest
import yaml

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.forgetting import forgets, traces_of
from fedstage.plan import one_shot_artefacts
from fedstage.plan.identity import line_id, local_id
from fedstage.plan.one_shot_sharing import local_line
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


def line_of(catalogue, experiment, method):
    (run,) = [r for r in catalogue.runs[experiment, "default"] if r.axes["method"] == method]
    return run.line


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


def test_models_and_logits_of_the_client_are_listed_on_both_parts_of_its_samples(catalogue):
    locals_ = [local_line(line_of(catalogue, "others", name)) for name in ("fens", "whole")]
    traces = found(catalogue)
    assert traces["its model"] == {one_shot_artefacts.local_models(local)[2] for local in locals_}
    said = {
        f"{one_shot_artefacts.local_folder(one)}/logits/*/client_2-*.safetensors" for one in locals_
    }
    assert traces["what its model says"] == said  # in any precision
    rough = one_shot_artefacts.members_quantised(line_of(catalogue, "others", "rough"))
    assert traces["its quantised model"] == {rough[2]}
    about = {path.rpartition("/")[2] for path in traces["what models say about its samples"]}
    assert about == {"client_*-aggregator.safetensors", "client_*-validation.safetensors"}
    assert traces["learnt from its samples"] == {
        one_shot_artefacts.local_models(line_of(catalogue, "others", "centralised"))[0]
    }


def test_aggregators_and_students_that_have_the_client_are_listed(catalogue):
    rows = ("fens", "rough", "fedkd", "whole")
    lines = [line_of(catalogue, "others", name) for name in rows]
    expected = {one_shot_artefacts.aggregator_folder(line) for line in lines}
    expected.add(one_shot_artefacts.student_folder(line_of(catalogue, "others", "fedkd")))
    assert found(catalogue)["learnt from its model and samples"] == expected
    # Client 0 is still in the aggregator that has forgotten client 2 only.
    other = one_shot_artefacts.aggregator_folder(line_of(catalogue, "a", "without_2"))
    assert found(catalogue, "b", 0)["learnt from its model and samples"] == expected | {other}


def test_rounds_of_the_same_clients_are_listed(catalogue):
    line = line_of(catalogue, "others", "fedavg")
    expected = {f"results/training/{line_id(line)}"}
    assert found(catalogue)["rounds that it may be in"] == expected


def test_nothing_of_another_seed_is_listed(catalogue):
    other = local_id(local_line(line_of(catalogue, "another_seed", "fens")))
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
