"""What scores of runs in rounds are computed from."""

from tests.shared.graph import lists_of
from tests.shared.recipes import BASIC, after, recipe

from fedstage.plan import data_files
from fedstage.plan.scores import evaluation
from fedstage.plan.training import global_model, logits, participants_table
from fedstage.plan.training_folder import training_folder
from fedstage.protocol.rounds import evaluated_rounds

#: Nothing teaches its models before round 10.
ONE = recipe(**BASIC | after(9, "designated"), global_models=2)
METRICS = f"{training_folder(ONE)}/metrics"
IN_ANY_CASE = {
    "recipe": [f"{training_folder(ONE)}/recipe.yaml"],
    "info": [data_files.data_file(ONE.data, "info")],
    "clients": [data_files.clients_table(ONE)],
}
TRAIN, TEST = (data_files.data_file(ONE.data, role) for role in ("train", "test"))
HISTOGRAM = {"histogram": [data_files.label_histogram(ONE)]}


def of_groups(file, *rounds):
    return [file(ONE, round_, group) for round_ in rounds for group in (0, 1)]


def test_every_so_many_rounds_and_the_last_are_evaluated():
    for rounds, every, expected in (
        (5, 1, [1, 2, 3, 4, 5]), (5, 2, [2, 4, 5]), (6, 3, [3, 6]), (1, 1, [1]), (3, 10, [3]),
    ):  # fmt: skip
        assert evaluated_rounds(rounds, every) == expected


def test_an_evaluation_reads_models_or_logits_of_its_rounds():
    def logits_of(members, images, *rounds):
        return of_groups(lambda *place: logits(*place, members, images), *rounds)

    for evaluated, role, data, models in (
        ("global_model", "test", TEST, [global_model(ONE, round_, 0) for round_ in (2, 4, 5)]),
        ("clients", "validation", TRAIN, logits_of("clients", "validation", 2, 4, 5)),
        ("aggregated_2", "test", TEST, logits_of("aggregated", "test", 1, 2, 3, 4, 5)),
    ):
        file = evaluation(ONE, evaluated, role, 5, 2)
        assert file == f"{METRICS}/{evaluated}-{role}/rounds_0005_every_2.parquet"
        participants = of_groups(participants_table, 2, 4, 5)
        more = {"models": models, "data": [data], "participants": participants}
        assert lists_of(file.job.inputs) == IN_ANY_CASE | HISTOGRAM | more
