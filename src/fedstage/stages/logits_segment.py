"""Stage `logits_segment`: the logits of a group's members on public images, of several rounds."""

from pathlib import Path

from fedstage.data.samples import read_line
from fedstage.plan.sharing import normalised
from fedstage.settings.lines import Line
from fedstage.stages.logits import logits_of_round


def logits_segment(
    *,
    line: Path,
    rounds: list[int],
    group: int,
    members: str,
    images: str,
    public: Path,
) -> None:
    """Call the stage `logits` for each of `rounds`.

    Parameters
    ----------
    members : str
        The kind of the members (`fedstage.plan.members`).
    images : str
        The name of the public images, as it stands in the files' names.
    public : Path
        The public images.
    """
    settings = normalised(read_line(line, Line))
    for round in rounds:
        logits_of_round(line, settings, round, group, members, images, public)
