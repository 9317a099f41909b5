"""The folders that a run's files lie in, and the settings that each is named after."""

from collections.abc import Iterable
from typing import Any

from fedstage.plan import one_shot, unfederated
from fedstage.plan.data_files import AnyLine
from fedstage.plan.graph import behind
from fedstage.plan.scores import EVALUATION
from fedstage.plan.taught import first_distillation
from fedstage.plan.training import global_model
from fedstage.settings.lines import Line, LocalLine


def scored(line: AnyLine) -> list[str]:
    """Return files of a run's first rounds, or scores, behind which are files of all its folders.

    After the first distillation, no later file of rounds lies in another folder.
    """
    if isinstance(line, LocalLine):
        return [unfederated.local_metrics_file(line, "test", 1)]
    if not isinstance(line, Line):
        return [one_shot.one_shot_metrics_file(line, "test")]
    last = first_distillation(line) or 1
    models = [global_model(line, last, group) for group in range(line.global_models)]
    return [EVALUATION(line, "global_model", "test", last, last), *models]


def main_folder(line: AnyLine) -> str:
    """Return the folder of a run's models and metrics."""
    return "/".join(scored(line)[0].split("/")[:3])


def folders_of(line: AnyLine) -> dict[str, AnyLine]:
    """Return the settings of each folder that has models of a run, or what these are made from.

    They are those of training, of clients, aggregators, students, and of what is generated.
    """
    jobs = behind(scored(line))
    return {job.folder: job.config for job in jobs if job.stage.folder.line}


def settings_of_folders(runs: Iterable[AnyLine]) -> dict[str, Any]:
    """Return the settings of all folders that runs depend on, by their paths."""
    files = (file for line in dict.fromkeys(runs) for file in scored(line))
    return {job.folder: job.config for job in behind(files)}
