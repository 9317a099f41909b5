"""The settings that people look for first, of resolved runs."""

from measured import FEDERATED, SETTINGS, described, runs_file

from fedstage.results.report.main_settings import main_settings
from fedstage.results.report.origins import Origin
from fedstage.results.report.sections import settings_section
from fedstage.results.runs_file import ExperimentRuns
from fedstage.settings.validation import validate


def candidate(kind="federated", rounds=2, training="federated", **recipe):
    settings = (FEDERATED if kind == "federated" else SETTINGS) | recipe
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
        "participants of a round": "4",
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


def test_what_varies_within_a_method_is_told_without_methods():
    runs = [
        ({"method": method, "participants": count, "seed": 0}, [candidate(participants=count)])
        for method in ("fedavg", "feddf")
        for count in (2, 4)
    ]
    assert main_settings(experiment(runs))["participants of a round"] == "2, 4"


def test_runs_without_rounds_have_neither_rounds_nor_participants():
    runs = [
        ({"method": "local_only", "seed": 0}, [candidate("local", training="alone")]),
        ({"method": "fedavg", "seed": 0}, [candidate(rounds=7)]),
        ({"method": "fens", "seed": 0}, [candidate("one_shot", 1, "one_shot")]),
    ]
    told = main_settings(experiment(runs))
    assert told["rounds"] == "7 (FedAvg), 1 (fens)"
    assert told["participants of a round"] == "4"
    only = main_settings(experiment(runs[:1]))
    assert not {"rounds", "participants of a round"} & only.keys()


def test_a_run_that_continues_another_tells_the_rounds_of_both():
    first, then = candidate(rounds=3)["parts"], candidate(rounds=5)["parts"]
    runs = [({"method": "fedavg", "seed": 0}, [{"parts": first + then}])]
    assert main_settings(experiment(runs))["rounds"] == "3 + 5"


def test_the_report_tells_them_also_where_recipes_leave_them_out():
    section = settings_section(two_methods(), [Origin("a", settings={"data.name": "digits"})])
    text = "\n".join(section.parts)
    assert "<dt>rounds</dt><dd>2</dd>" in text
    assert "<dt>participants of a round</dt><dd>4</dd>" in text
    assert "data.name: digits" in text
