"""Names of clients and classes from the data, for figures and tables of partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fedstage.experiments.runs_file import ExperimentRun
from fedstage.storage.files import load_json

LONGEST = 18  # characters of a name in a figure
#: The name of the server's share, after the clients', if it has its own samples.
CORE = "server"


@dataclass(frozen=True)
class Names:
    """The names of clients and classes by their numbers; None where they are numbers."""

    clients: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None


NUMBERS = Names()


def read_names(runs: Sequence[ExperimentRun]) -> Names:
    """Return the names in the infos of the runs' data sets, if all data sets share them.

    Clients have names only if the partition is natural.
    """
    infos = {run.info: load_json(run.info) for run in runs if run.info}
    clients = {
        tuple(infos[run.info].get("client_names", ())) if run.info and run.is_natural else ()
        for run in runs
    }
    return Names(_common(clients), _common({tuple(info["class_names"]) for info in infos.values()}))


def _common(names: set[tuple[str, ...]]) -> tuple[str, ...] | None:
    return (next(iter(names)) or None) if len(names) == 1 else None


def name_of(number: int, names: Sequence[str] | None) -> str:
    """Return the name of a client or class, or its number if there are no names."""
    if names is None:
        return str(number)
    return names[number] if number < len(names) else CORE


def shorten(name: str) -> str:
    """Return a name that fits a figure: in one line, and not too long."""
    name = " ".join(name.splitlines())
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def name_partitions(histograms: Mapping[str, pd.DataFrame], names: Names) -> pd.DataFrame:
    """Return the samples of each client and class, with names: what the figure shows."""
    frames = [
        frame.assign(
            partition=label,
            client_name=[name_of(client, names.clients) for client in frame["client"]],
            class_name=[name_of(label, names.classes) for label in frame["label"]],
        )
        for label, frame in histograms.items()
    ]
    columns = ["partition", "client", "client_name", "label", "class_name", "samples"]
    return pd.concat(frames)[columns]
