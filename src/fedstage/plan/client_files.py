"""Where the accuracies of a training line's main model by client and class are."""

from fedstage.plan.artefacts import line_folder
from fedstage.settings.lines import Line


def client_file(line: Line, rounds: int) -> str:
    """Return the accuracies after the last round: a row a client and kind, and a row a class."""
    return f"{line_folder(line)}/metrics/clients/rounds_{rounds:04d}.parquet"
