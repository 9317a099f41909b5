"""Stage `logits_segment`: the logits of a group's members on public images, of several rounds."""

from pathlib import Path

from fedstage import graph
from fedstage.config import Line
from fedstage.lines import normalised
from fedstage.reading import read_line
from fedstage.stages.logits import logits


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
        read = graph.member_models(settings, round, group, members)
        logits(
            line=line,
            members=members,
            models=[Path(path) for path in read.models],
            aggregated=Path(read.aggregated) if read.aggregated else None,
            start=Path(read.start) if read.start else None,
            data=public,
            info=Path(graph.data_file(settings.data, "info")),
            output=Path(graph.logits_file(settings, round, group, members, images)),
        )
