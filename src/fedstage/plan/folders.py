"""The folders that a run consists of, and the settings that each is named after."""

from fedstage.plan import one_shot
from fedstage.plan.discriminators import odds_files
from fedstage.plan.graph import behind
from fedstage.plan.one_shot_artefacts import local_folder
from fedstage.plan.one_shot_sharing import local_line, unquantised
from fedstage.plan.training_folder import training_folders
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine

AnyLine = Line | LocalLine | OneShotLine


def folders_of(line: AnyLine) -> dict[str, AnyLine]:
    """Return the settings of each folder that has models of a line, or what these are made from.

    They are those of training, of clients, aggregators, students, and of what is generated.
    """
    if isinstance(line, LocalLine):
        return {local_folder(line): unquantised(line)}
    if isinstance(line, OneShotLine):
        local = local_line(line)
        scored = one_shot.one_shot_metrics_file(line, "test")
        return behind(scored) | {local_folder(local): local}
    return training_folders(line) | behind(*odds_files(line))
