"""What is known of communication before anything is trained, with what a paper reports."""

import shutil
from pathlib import Path

import pytest
from tests.shared.settings import SERVER, config, federated

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.settings.validation import validate

WORKFLOW = Path(__file__).parents[4] / "workflow"
METHODS = ["fens", "fedadam", "fedkd_4r_fedkd_then_fedavg"]
BASE = federated() | {
    "partition": {"dirichlet": {"alpha": 0.1}}, "validation": 0.1, "aggregator_fraction": 0.1,
    "rounds": 5, "server": SERVER,
}  # fmt: skip
MEMORY = {
    "paper": "fens", "table": "table4", "where": {"model": "resnet8"},
    "axes": {"method": "method"},
    "match": {"partition.alpha": {0.1: {}}, "method": {"fedkd_4r_fedkd_then_fedavg": None}},
}  # fmt: skip


@pytest.fixture
def load(tmp_path):
    """A function that resolves an experiment with the library of methods and papers."""
    (tmp_path / "experiments").mkdir()
    shutil.copy(WORKFLOW / "methods.yaml", tmp_path)
    shutil.copytree(
        WORKFLOW / "papers",
        tmp_path / "papers",
        ignore=shutil.ignore_patterns("experiments", "claims.yaml"),
    )

    def resolved(scale="default", **changes):
        experiment = {
            "title": "E",
            "base": BASE,
            "grid": {"method": METHODS, "partition.alpha": [0.1]},
            "table": {"columns": ["partition.alpha"]},
            "results": ["communication"],
            "communication": {"published": MEMORY},
            "scales": {scale: None},
        }
        target = {"targets": [f"e/{scale}"]}
        return load_catalogue(config(e=experiment | changes) | target, tmp_path)

    return resolved


def described(catalogue, scale="default"):
    return validate(ExperimentRuns, describe_runs(catalogue, "e", scale), "here")


def test_each_run_has_its_parts_and_the_published_memory(load):
    found = described(load("paper"), "paper")
    assert [run.memory_mib for run in found.runs] == [377.03, 18.85, None]
    assert found.memory == "FENS, Table 4"
    lengths = [[part.length.rounds for part in run.candidates[0].parts] for run in found.runs]
    assert lengths == [[1], [5], [1, 3]]
    kinds = [part.one_shot is not None for part in found.runs[2].candidates[0].parts]
    assert kinds == [True, False]


CIFAR = BASE | {"data": {"cifar10": {"held_out": 5}}, "model": "resnet8"}
PAPER = {"paper": {"base": CIFAR | {"model": {"resnet8": {"norm": "batch"}}}}}


@pytest.mark.parametrize(
    ("own", "scales", "told"),
    [
        (CIFAR, {}, True),  # what the published rows name
        (CIFAR | {"model": "cnn_small"}, {}, False),
        (CIFAR | {"data": "digits"}, {}, False),
        (CIFAR | {"rounds": 4}, PAPER, True),  # what the scale `paper` has
        (CIFAR | {"model": "cnn_small"}, PAPER, False),
        (CIFAR | {"model": {"resnet8": {"norm": "group"}}}, PAPER, False),
        (CIFAR | {"data": {"parquet": {"folder": "mine", "held_out": 5}}}, PAPER, False),
    ],
    ids=str,
)
def test_elsewhere_only_the_same_data_and_models_have_published_memory(load, own, scales, told):
    memory = MEMORY | {"where": {"model": "resnet8", "dataset": "cifar10"}}
    changes = {
        "base": own,
        "grid": {"method": METHODS[:2], "partition.alpha": [0.1]},
        "communication": {"published": memory | {"match": {"partition.alpha": {0.1: {}}}}},
        "scales": {"study": None} | scales,
    }
    found = described(load("study", **changes), "study")
    memories = [377.03, 18.85] if told else [None, None]
    assert [run.memory_mib for run in found.runs] == memories
    assert found.memory == ("FENS, Table 4" if told else None)
    marked = [note for note in found.communication_notes if note.startswith("**Another setting**")]
    assert len(marked) == told
    assert all("scale `study` has the published data and models, but" in note for note in marked)


PARAMETERS = {
    "paper": "fedet",
    "table": "table3",
    "metric": "params_to_reach",
    "where": {"target_accuracy": 70, "dataset": "cifar10"},
    "match": {"method": {"fens": None, "fedadam": {"method": "fedavg"}}},
}


@pytest.mark.parametrize(
    ("communication", "told"),
    [
        ({"published": PARAMETERS}, "needs a fixed accuracy in reach, such as reach = 70"),
        ({"published": PARAMETERS, "reach": {"method": "fens"}}, "needs a fixed accuracy in reach"),
        (
            {"published": PARAMETERS | {"metric": "top1_accuracy"}},
            "'top1_accuracy': must be one of memory_mib, params, params_to_reach, comm_cost_ratio",
        ),
        ({"reach": 0}, "communication.reach = 0: must be cells, {method: fens}, an accuracy"),
        ({"reach": 101.0}, "communication.reach = 101.0: must be cells"),
        ({"reach": True}, "communication.reach = True: must be cells"),
        ({"reach": {}}, "communication.reach = {}: must be cells"),
        ({"reach": {"data": {}}}, "communication.reach = {'data': {}}: must be cells"),
        ({"reach": {"data": {"a": 170}}}, "reach = {'data': {'a': 170}}: must be cells"),
        ({"reach": {"data": {"a": 70}, "method": "fens"}}, "'method': 'fens'}: must be cells"),
    ],
    ids=str,
)
def test_what_is_no_goal_is_told_in_one_line(load, communication, told):
    with pytest.raises(FedstageError) as caught:
        load(communication=communication)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
