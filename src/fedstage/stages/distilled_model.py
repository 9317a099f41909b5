"""Stage `distilled_model`: a student learns from a one-shot ensemble on the public images."""

from pathlib import Path

from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.transfers import loss_of, targets_of
from fedstage.algorithm.one_shot.client_models import of_classes
from fedstage.algorithm.one_shot.prediction import of_chosen, predict
from fedstage.data.samples import read_labelled, read_public, tell_private
from fedstage.plan.inputs import DistilledModelInputs
from fedstage.protocol.one_shot import members
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages.inputs import begin, load_model, stack_logits
from fedstage.storage.tensors import load_tensors, save_tensors


def distilled_model(
    recipe: OneShotRecipe, read: DistilledModelInputs[Path], *, output: Path
) -> None:
    """Teach the student the aggregator's predictions on the public images, or their labels."""
    device, info = begin(recipe, read.info)
    teaching = teaching_of(recipe)
    images = read_public(read.public, info, device)
    tell_private(images, read.data, read.clients)
    labelled = teaching.server.labels or read.aggregator is None
    labels = read_labelled(read.public, None, device)[1] if labelled else None
    if read.aggregator is not None:
        parameters, notes = load_tensors(read.aggregator)
        learnt_from = notes["members"]
        stacked = stack_logits(read.logits, device)
        ensemble = of_chosen(recipe, learnt_from, stacked, info)
        teacher = predict(recipe.aggregator, parameters, ensemble, images, info)
        ensemble = of_classes(ensemble, info)
    else:
        assert labels is not None, "checked by OneShotRecipe: without an ensemble labels teach"
        teacher, ensemble, learnt_from = labels, labels.new_empty(0, len(labels)), members(recipe)
    weights, learnt = teach(
        load_model(read.start, recipe.student, info, device, recipe.numerics),
        Taught(images, targets_of(teaching, teacher, ensemble), labels),
        loss_of(teaching),
        teaching.server,
        recipe.numerics,
        info,
        (recipe.seed, "distilled_model"),
        "distilled model",
        server_validation=read.server_validation,
    )
    save_tensors(output, weights, {"members": learnt_from} | learnt)
