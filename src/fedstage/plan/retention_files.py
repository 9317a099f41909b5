"""Where the measures of forgetting of a training line are."""

from pathlib import Path

from fedstage.plan.artefacts import line_folder
from fedstage.settings.lines import Line


def retention_file(line: Line, rounds: int) -> str:
    """Return the measures of a line: a row a round."""
    return f"{line_folder(line)}/metrics/retention/rounds_{rounds:04d}.parquet"


def right_file(retention: str) -> str:
    """Return, beside the measures, which test samples are right before and after all rounds."""
    return str(Path(retention).with_suffix(".safetensors"))
