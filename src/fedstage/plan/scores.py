"""Measurements of runs: accuracy, forgetting, accuracy by client and class."""

from collections.abc import Iterable
from functools import partial
from itertools import product

from fedstage.plan import data_files, one_shot, unfederated
from fedstage.plan.graph import File, Stage
from fedstage.plan.inputs import ClientAccuracyInputs, EvaluationInputs, RetentionInputs
from fedstage.plan.members import evaluated_name, parse_evaluated
from fedstage.plan.training import global_model, member_logits, participants_table
from fedstage.plan.training_folder import FOLDER, teaching
from fedstage.protocol.groups import client_groups
from fedstage.protocol.rounds import evaluated_rounds
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.runs import RunLength

#: A stage that measures a run.
_measured = partial(Stage, folder=FOLDER, module="evaluation", below="metrics/", reads=teaching)


@partial(
    _measured, outputs={"output": "{evaluated}-{role}/rounds_{rounds:04d}_every_{every}.parquet"}
)
def evaluation(
    recipe: Recipe, evaluated: str, role: str, rounds: int, every: int
) -> EvaluationInputs[str]:
    """Score a run's global models or ensembles, all rounds."""
    scored = evaluated_rounds(rounds, every)
    predicting = parse_evaluated(evaluated)
    if isinstance(predicting, GlobalModel):
        models = [global_model(recipe, round_, 0) for round_ in scored]
    else:
        members = (member_logits(recipe, round_, predicting, role) for round_ in scored)
        models = list(dict.fromkeys(path for paths in members for path in paths))
    return EvaluationInputs(
        models=models,
        **data_files.scored_samples(recipe, role),
        participants=participants_tables(recipe, scored),
    )


def participants_tables(recipe: Recipe, rounds: Iterable[int]) -> list[str]:
    """Return the participants of all groups in some rounds."""
    places = product(rounds, client_groups(recipe))
    return [participants_table(recipe, round_, group) for round_, group in places]


def metrics_file(recipe: data_files.AnyRecipe, length: RunLength) -> File:
    """Return the metrics of a run."""
    if isinstance(recipe, LocalRecipe):
        return unfederated.local_metrics_file(recipe, length)
    if isinstance(recipe, OneShotRecipe):
        return one_shot.one_shot_metrics_file(recipe, length.role)
    name, every = evaluated_name(length.evaluate), length.evaluate_every
    return evaluation(recipe, name, length.role, length.rounds, every)


@partial(
    _measured,
    outputs={
        "output": "retention/rounds_{rounds:04d}.parquet",
        "right": "retention/rounds_{rounds:04d}.safetensors",
    },
)
def retention(recipe: Recipe, rounds: int) -> RetentionInputs[str]:
    """Measure what a run's main model forgets from round to round."""
    return RetentionInputs(
        models=[global_model(recipe, round_, 0) for round_ in range(rounds + 1)],
        **data_files.clients_samples(recipe),
        test=data_files.data_file(recipe.data, "test"),
        participants=participants_tables(recipe, range(1, rounds + 1)),
    )


@partial(_measured, outputs={"output": "clients/rounds_{rounds:04d}.parquet"})
def client_accuracy(recipe: Recipe, rounds: int) -> ClientAccuracyInputs[str]:
    """Score a run's main model for each client and each class."""
    return ClientAccuracyInputs(
        model=global_model(recipe, rounds, 0),
        **data_files.scored_samples(recipe),
        test=data_files.data_file(recipe.data, "test"),
    )
