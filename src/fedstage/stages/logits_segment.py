"""Stage `logits_segment`: the logits of a group's members on public images, of several rounds."""

from pathlib import Path

from fedstage.config import Line
from fedstage.lines import normalised
from fedstage.reading import read_line
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
        The kind of the members (`fedstage.kinds`).
    images : str
        The name of the public images, as it stands in the files' names.
    public : Path
        The public images.
    """
    settings = normalised(read_line(line, Line))
    for round in rounds:
        logits_of_round(line, settings, round, group, members, images, public)
