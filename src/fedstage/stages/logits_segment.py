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
        ``aggregated`` or ``clients``.
    images : str
        The name of the public images, as it stands in the files' names.
    public : Path
        The public images.
    """
    settings = normalised(read_line(line, Line))
    for round in rounds:
        models = (
            graph.updates(settings, round, group)
            if members == "clients"
            else [graph.aggregated_model(settings, round, group)]
        )
        folder = graph.round_folder(settings, round, group)
        logits(
            line=line,
            members=members,
            models=[Path(path) for path in models],
            data=public,
            info=Path(graph.data_file(settings.data, "info")),
            output=Path(f"{folder}/logits/{members}-{images}.safetensors"),
        )
