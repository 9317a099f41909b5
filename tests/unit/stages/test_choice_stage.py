from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.stages.choice import choice
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table, save_table

VALUES = [{"client.epochs": 1}, {"client.epochs": 5}, {"client.epochs": 20}]


def metrics(path, role, *accuracies):
    """Write metrics of as many rounds as there are accuracies."""
    row = {
        "evaluated": "global_model", "role": role, "loss": 1.0, "samples": 9, "client_std": None,
        "own_test_mean": None, "own_test_std": None,
        "own_mean": 1.0, "own_std": None, "bytes_up": 3, "bytes_down": 4, "participants": 2,
        "balanced_accuracy": 1.0, "auc": None, "ece": None, "disagreement": None,
        "ensemble_gain": None, "training_loss": None,
    }  # fmt: skip
    rows = [
        row | {"round": number, "top1_accuracy": accuracy}
        for number, accuracy in enumerate(accuracies, start=1)
    ]
    columns = {name: [one[name] for one in rows] for name in METRICS_SCHEMA.names}
    save_table(path, columns, METRICS_SCHEMA)
    return path


def chosen(folder, validation, test=((1.0,), (2.0,), (3.0,)), role="validation"):
    output, told = folder / "metrics.parquet", folder / "chosen.json"
    choice(
        values=VALUES,
        validation=[metrics(folder / f"v{n}", role, *own) for n, own in enumerate(validation)],
        metrics=[metrics(folder / f"t{n}", "test", *own) for n, own in enumerate(test)],
        output=output,
        chosen=told,
    )
    return load_table(output).to_pydict(), load_json(told)


def test_the_best_on_validation_is_passed_on_whatever_the_test_set_says(tmp_path):
    table, told = chosen(tmp_path, [(50.0,), (70.0,), (60.0,)], [(99.0,), (10.0,), (98.0,)])
    assert (table["top1_accuracy"], table["role"]) == ([10.0], ["test"])
    assert told["chosen"] == {"client.epochs": 5}
    assert [one["validation_accuracy"] for one in told["candidates"]] == [50.0, 70.0, 60.0]
    assert [one["values"] for one in told["candidates"]] == VALUES


def test_the_last_round_decides_and_all_rounds_are_passed_on(tmp_path):
    table, told = chosen(
        tmp_path, [(90.0, 50.0), (10.0, 60.0), (95.0, 55.0)], [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]
    )
    assert told["chosen"] == VALUES[1]
    assert (table["round"], table["top1_accuracy"]) == ([1, 2], [3.0, 4.0])
    assert load_table(tmp_path / "metrics.parquet").schema.remove_metadata() == METRICS_SCHEMA
