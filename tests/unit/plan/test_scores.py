"""What scores of runs in rounds are computed from."""

from tests.shared.graph import lists_of

from fedstage.plan import data_files
from fedstage.plan.rounds import evaluated_rounds
from fedstage.plan.scores import client_accuracy, evaluation, retention
from fedstage.plan.training import global_model, logits, participants_table
from fedstage.plan.training_folder import training_folder
from fedstage.settings.recipes import Recipe

ONE = Recipe.model_validate({
    "data": "digits", "clients": 6, "partition": "iid", "participants": 4, "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}, "global_models": 2,
    "ensemble": "clients", "global": {"designated": {"warm_up": 9}}, "seed": 0,
    "server": {"steps": 2, "batch_size": 8, "learning_rate": 0.1},
})  # fmt: skip
IN_ANY_CASE = {
    "recipe": [f"{training_folder(ONE)}/recipe.yaml"],
    "info": [data_files.data_file(ONE.data, "info")],
    "clients": [data_files.clients_table(ONE)],
}
TRAIN, TEST = (data_files.data_file(ONE.data, role) for role in ("train", "test"))


def participants(*rounds):
    return [participants_table(ONE, round_, group) for round_ in rounds for group in (0, 1)]


def test_every_so_many_rounds_and_the_last_are_evaluated():
    for rounds, every, expected in (
        (5, 1, [1, 2, 3, 4, 5]), (5, 2, [2, 4, 5]), (6, 3, [3, 6]), (1, 1, [1]), (3, 10, [3]),
    ):  # fmt: skip
        assert evaluated_rounds(rounds, every) == expected


def test_an_evaluation_reads_models_or_logits_of_its_rounds():
    for evaluated, role, data, models in (
        ("global_model", "test", TEST, [global_model(ONE, round_, 0) for round_ in (2, 4, 5)]),
        ("clients", "validation", TRAIN, [logits(ONE, round_, group, "clients", "validation")
                                          for round_ in (2, 4, 5) for group in (0, 1)]),
        ("aggregated_2", "test", TEST, [logits(ONE, round_, group, "aggregated", "test")
                                        for round_ in (1, 2, 3, 4, 5) for group in (0, 1)]),
    ):  # fmt: skip
        file = evaluation(ONE, evaluated, role, 5, 2)
        assert file == (
            f"{training_folder(ONE)}/metrics/{evaluated}-{role}/rounds_0005_every_2.parquet"
        )
        assert lists_of(file.job.inputs) == IN_ANY_CASE | {
            "models": models,
            "data": [data],
            "histogram": [data_files.label_histogram(ONE)],
            "participants": participants(2, 4, 5),
        }


def test_retention_and_accuracy_by_client_read_models_training_and_test_samples():
    samples = {"data": [TRAIN], "test": [TEST]}
    for output, ending in (("output", "parquet"), ("right", "safetensors")):
        path = retention(ONE, 3, output=output)
        assert path == f"{training_folder(ONE)}/metrics/retention/rounds_0003.{ending}"
    assert lists_of(path.job.inputs) == IN_ANY_CASE | samples | {
        "models": [global_model(ONE, round_, 0) for round_ in range(4)],
        "participants": participants(1, 2, 3),
    }
    by_client = client_accuracy(ONE, 3)
    assert by_client == f"{training_folder(ONE)}/metrics/clients/rounds_0003.parquet"
    assert lists_of(by_client.job.inputs) == IN_ANY_CASE | samples | {
        "model": [global_model(ONE, 3, 0)],
        "histogram": [data_files.label_histogram(ONE)],
    }


def test_scores_are_in_the_folder_of_the_whole_run_even_where_nothing_taught_yet():
    for file in (evaluation(ONE, "global_model", "test", 2, 1), retention(ONE, 2),
                 client_accuracy(ONE, 2)):  # fmt: skip
        assert file.startswith(f"{training_folder(ONE)}/")
        assert not global_model(ONE, 2, 0).startswith(f"{training_folder(ONE)}/")
