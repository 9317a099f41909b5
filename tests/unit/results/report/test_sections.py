"""The settings that people look for first, of resolved runs."""

from measured import described, runs_file
from tests.shared.settings import federated, one_shot

from fedstage.experiments.runs_file import ExperimentRuns
from fedstage.results.report.sections import main_settings
from fedstage.settings.validation import validate


def candidate(kind="federated", rounds=2, training="federated", **recipe):
    settings = (federated() if kind == "federated" else one_shot()) | recipe
    part = {"length": {"rounds": rounds, "training": training}, kind: settings}
    return {"parts": [part], "values": {"rounds": rounds}}


def experiment(runs):
    listed = [described(settings, candidates=tried) for settings, tried in runs]
    return validate(ExperimentRuns, runs_file(listed, labels={"fedavg": "FedAvg"}), "runs")


def two_methods(**changes):
    return experiment(
        ({"method": method, "seed": seed}, [candidate(**recipe, seed=seed)])
        for method, recipe in (("fedavg", {}), ("feddf", changes))
        for seed in (0, 1)
    )


def test_what_all_runs_have_in_common_is_told_with_its_defaults():
    assert main_settings(two_methods()) == {
        "rounds": "2",
        "clients": "4",
        "participants of a round": "2",
        "local training": "1 epoch",
        "batch size": "16",
        "learning rate": "0.05",
        "model": "cnn_small",
        "data": "digits",
        "partition": "iid",
        "seeds": "0, 1",
    }


def test_values_that_differ_are_told_with_their_methods():
    client = {"steps": 50, "batch_size": 16, "learning_rate": 0.1}
    partition = {"dirichlet": {"alpha": 0.1, "min_samples": 5}}
    models = {
        "architectures": ["cnn_small", {"mlp": {"hidden": [5, 6], "head": {}}}],
        "global_models": 2,
    }
    told = main_settings(two_methods(client=client, partition=partition, **models))
    assert told["local training"] == "1 epoch (FedAvg), 50 steps (feddf)"
    assert told["learning rate"] == "0.05 (FedAvg), 0.1 (feddf)"
    assert told["partition"] == "iid (FedAvg), dirichlet alpha 0.1 min_samples 5 (feddf)"
    assert told["model"] == "cnn_small (FedAvg), cnn_small and mlp head hidden [5, 6] (feddf)"
