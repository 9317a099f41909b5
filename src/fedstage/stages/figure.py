"""Stage `figure`: accuracy over rounds or bytes, the partition and more of an experiment."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from fedstage.experiments.runs_file import read_runs_file
from fedstage.results.curves import draw_bytes, draw_forgetting, draw_rounds
from fedstage.results.points import draw_ensembles, draw_partition, draw_published, draw_sweep
from fedstage.results.style import save_figure
from fedstage.results.tidy import Tidy, read_tidy
from fedstage.stages.collected.names import names_of, partitions_of

#: Figures of scores, by what they show.
OF_SCORES: dict[str, Callable[[Tidy], Figure]] = {
    "accuracy": draw_rounds,
    "published": draw_published,
    "over": draw_sweep,
    "ensembles": draw_ensembles,
    "communication": draw_bytes,
    "costs": partial(draw_bytes, last=True),
    "retention": draw_forgetting,
}


def figure(*, runs: Path, scores: Path | None = None, shown: str, files: list[Path]) -> None:
    """Draw what is `shown`, to a file of each format."""
    if shown == "partition":
        every = read_runs_file(runs).runs
        names = names_of(every)
        drawn = draw_partition(partitions_of(every), names.get("clients"), names.get("classes"))
    else:
        assert scores is not None, "an input of all other figures"
        drawn = OF_SCORES[shown](read_tidy(scores))
    for file in files:
        save_figure(drawn, file)
