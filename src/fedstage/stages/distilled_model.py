"""Stage `distilled_model`: a student learns from a one-shot ensemble on the public images."""

from pathlib import Path

from fedstage.algorithm.global_trainers.student import Taught, teach
from fedstage.algorithm.global_trainers.transfers import transfer
from fedstage.algorithm.one_shot.outputs import of_classes
from fedstage.algorithm.one_shot.prediction import of_chosen, predict
from fedstage.data.samples import read_labelled, read_public
from fedstage.plan.one_shot_sharing import members
from fedstage.settings.one_shot import OneShotLine
from fedstage.stages.inputs import begin, load_model, stack_logits
from fedstage.storage.tensors import load_tensors, save_tensors


def distilled_model(
    *,
    line: Path,
    info: Path,
    aggregator: Path | None = None,
    logits: list[Path] | None = None,
    start: Path,
    public: Path,
    server_validation: Path | None = None,
    output: Path,
) -> None:
    """Teach the student the aggregator's predictions on the public images, or their labels.

    Parameters
    ----------
    aggregator, logits : optional
        The ensemble that teaches, and its members' logits on the public images.
    server_validation : Path, optional
        The server's own labelled images, where they decide when training stops.
    """
    settings, device, dataset_info = begin(line, OneShotLine, info)
    assert settings.distillation is not None, "checked by the catalogue: a student has a transfer"
    assert settings.server is not None, "checked by OneShotLine"
    images = read_public(public, dataset_info, device)
    labelled = settings.server.labels or aggregator is None
    labels = read_labelled(public, None, device)[1] if labelled else None
    if aggregator is not None:
        parameters, notes = load_tensors(aggregator)
        learnt_from = notes["members"]
        stacked = stack_logits(logits or [], device)
        ensemble = of_chosen(settings, learnt_from, stacked, dataset_info)
        teacher = predict(settings.aggregator, parameters, ensemble, images, dataset_info)
        ensemble = of_classes(ensemble, dataset_info)
    else:
        assert labels is not None, "checked by OneShotLine: without an ensemble labels teach"
        teacher, ensemble, learnt_from = labels, labels.new_empty(0, len(labels)), members(settings)
    how = transfer(settings.distillation)
    weights, learnt = teach(
        load_model(start, settings.student, dataset_info, device, settings.numerics),
        Taught(images, how.targets(settings.distillation, teacher, ensemble), labels),
        how.loss(settings.distillation, settings.server),
        settings.server,
        settings.numerics,
        dataset_info,
        (settings.seed, "distilled_model"),
        "distilled model",
        server_validation=server_validation,
    )
    save_tensors(output, weights, {"members": learnt_from} | learnt)
