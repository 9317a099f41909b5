"""What the server sees of single clients, according to the edges of the graph.

A client's files are private until a job of the server reads one. With secure aggregation the server
reads only messages, which reveal nothing but their sum.
"""

from collections.abc import Iterable
from typing import NamedTuple

from fedstage.plan.data_files import partition
from fedstage.plan.discriminators import client_discriminator
from fedstage.plan.graph import File, Stage, behind, files_in, listed
from fedstage.plan.one_shot import client_generator, feature_moments
from fedstage.plan.scores import metrics_file
from fedstage.plan.training import (
    SECURE,
    client_state,
    global_model,
    local_training,
    member_logits,
)
from fedstage.plan.unfederated import client_logits, local_model, quantised_model
from fedstage.protocol.rounds import first_distillation
from fedstage.settings.ensembles import GlobalModel
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

#: The stages whose files are of a single client.
OF_ONE_CLIENT = frozenset(
    {
        local_training, client_discriminator, local_model, quantised_model, client_logits,
        client_generator, feature_moments, client_state,
    }
)  # fmt: skip
#: All stages that clients run.
BY_CLIENTS = OF_ONE_CLIENT.union(SECURE)


class Exposed(NamedTuple):
    """A file of a single client, and the stage of the server that reads it."""

    stage: str
    file: str


def exposed(files: Iterable[str], but: Stage | None = None) -> Exposed | None:
    """Return the first file of a single client that the server reads behind `files`, if any.

    What the stage `but` reads does not count.
    """
    for job in behind(files):
        if job.stage not in BY_CLIENTS and job.stage is not but:
            for seen in filter(_tells, files_in(job.inputs)):
                return Exposed(job.stage.name, seen)
    return None


def _tells(file: File) -> bool:
    """Whether a file is of a single client, or has the label counts of all."""
    histogram = file.job.stage is partition and file.output == "histogram"
    return histogram or file.job.stage in OF_ONE_CLIENT


def predicting(recipe: Recipe | OneShotRecipe, length: RunLength) -> list[str]:
    """Return the files that a run predicts with, which its evaluation reads, and global models.

    Rounds count up to the second distilled one, since the jobs behind later rounds are alike.
    """
    if isinstance(recipe, OneShotRecipe):
        read = metrics_file(recipe, length).job.inputs
        return [file for name in ("aggregator", "student") for file in listed(read[name])]
    last = min(length.rounds, first_distillation(recipe) + 1)
    models = [global_model(recipe, last, group) for group in range(recipe.global_models)]
    if isinstance(length.evaluate, GlobalModel):
        return models
    return [*models, *member_logits(recipe, last, length.evaluate, length.role)]
