"""From a file of a training line to its equation: which stage makes it, and from which files.

A job may hold one equation or, as a segment, those of many rounds; the files are the same.
"""

import re
from dataclasses import dataclass

from fedstage.plan import artefacts
from fedstage.plan.sharing import is_distilled
from fedstage.settings.lines import Line

_PLACE = re.compile(r"(results/training/[^/]+)/round_(\d{4})/group_(\d+)/(.+)\.(?:\w+)")
_STAGES = {
    "aggregated": "aggregation",
    "participants": "aggregation",
    "state": "aggregation",
    "distilled": "distillation",
}


@dataclass(frozen=True)
class Origin:
    """Where in a training line a file belongs.

    Attributes
    ----------
    stage : str
        The stage that makes it.
    folder : str
        The folder of the line.
    round, group : int
        t and k.
    name : str
        The file's name below the group's folder, without its suffix.
    """

    stage: str
    folder: str
    round: int
    group: int
    name: str


def find_origin(file: str) -> Origin | None:
    """Return where a file belongs, None if it is of no round of a training line.

    Parameters
    ----------
    file : str
        Path relative to the working folder, such as ``results/training/...``.
    """
    match = _PLACE.fullmatch(file)
    if match is None:
        return None
    folder, round, group, name = match.groups()
    stage = "logits" if name.startswith("logits/") else _STAGES.get(name)
    if name.startswith("slot_"):
        stage = "local_training"
    return Origin(stage, folder, int(round), int(group), name) if stage else None


def read_by(line: Line, origin: Origin) -> dict[str, list[str]]:
    """Return the files that the equation of a file reads, by the options of its stage.

    Parameters
    ----------
    line : Line
        The line that the file stands under.
    """
    round, group = origin.round, origin.group
    common = {"line": [artefacts.line_file(line)], "info": [artefacts.data_file(line.data, "info")]}
    match origin.stage:
        case "local_training":
            return common | {
                "data": [artefacts.data_file(line.data, "train")],
                "clients": [artefacts.clients_table(line)],
                "participation": [artefacts.participation_table(line, round)],
                "start": [artefacts.global_model(line, round - 1, group)],
                **_if_any("state", artefacts.states_before(line, round, group)),
            }
        case "aggregation":
            return common | {
                "start": [artefacts.global_model(line, round - 1, group)],
                "updates": artefacts.updates(line, round, group),
                **_if_any("state", artefacts.own_state_before(line, round, group)),
                **_if_any("public", artefacts.statistics_images(line)),
            }
        case "distillation":
            read = {
                "start": [artefacts.aggregated_model(line, round, group)],
                "logits": artefacts.teacher_logits(line, round),
                "judged": artefacts.judged_logits(line, round),
                "updates": artefacts.fused_updates(line, round, group),
                "public": [artefacts.public_file(line)],
                "server_validation": _given(artefacts.server_validation(line)),
            }
            return common | {option: files for option, files in read.items() if files}
    return common | _members(line, origin)


def _if_any(option: str, files: list[str]) -> dict[str, list[str]]:
    return {option: files} if files else {}


def _members(line: Line, origin: Origin) -> dict[str, list[str]]:
    """Return what logits are computed from, which ``logits/MEMBERS-IMAGES`` names."""
    members, _, images = origin.name.removeprefix("logits/").partition("-")
    from_models = artefacts.member_models(line, origin.round, origin.group, members)
    read = {"models": list(from_models.models)}
    for option in ("aggregated", "start"):
        if files := _given(getattr(from_models, option)):
            read[option] = files
    if images in ("test", "test_own", "validation"):
        read["data"] = [artefacts.evaluation_data(line, images)]
    elif images in ("held_out", "server_validation"):
        read["data"] = [artefacts.data_file(line.data, images)]
    else:
        read["data"] = [f"{artefacts.RESULTS}/data/{images}/train.safetensors"]
    if images == "validation":
        read["clients"] = [artefacts.clients_table(line)]
    return read


def made_in_segment(line: Line, origin: Origin, first: int, last: int, groups: list[int]) -> bool:
    """Whether a segment of the line, of rounds `first` to `last` of `groups`, makes a file."""
    if not (first <= origin.round <= last and origin.group in groups):
        return False
    if origin.stage != "logits":
        return True
    if not any(is_distilled(line, origin.round, group) for group in groups):
        return False
    # Where students are taught, the segment computes the teacher's logits as well.
    spoken = (
        f"logits/{members}-{images}" for members, images, _ in artefacts.teaching_logits(line)
    )
    return origin.name in spoken


def _given(path: str | None) -> list[str]:
    return [] if path is None else [path]
