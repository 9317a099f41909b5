"""The readable beginnings of folders' names, and patterns for the names of some.

A name ends in a digest of the settings that determine the folder's content, in canonical form:
fields at their defaults left out, 1 equal to 1.0. Changing a default changes the meaning of old
digests, so it must raise `SCHEMA_VERSION` (a test holds the two together).
"""

import re
from functools import cache
from typing import Any

from fedstage.settings.data import Data
from fedstage.settings.exchange import keeps_changes, keeps_statistics, optimises
from fedstage.settings.lines import Line
from fedstage.settings.models import Model

#: Marks, in the names of lines, clients that keep their own running statistics, and compression.
_LOCAL_STATISTICS = "local_bn"
_COMPRESSED = "stc"


@cache
def training_name(line: Line) -> str:
    """Return the readable beginning of the name of a folder of rounds."""
    method: str = line.local.name
    if keeps_statistics(line):
        method += f"-{_LOCAL_STATISTICS}"
    if line.compression.name != "none":
        method += f"-{line.compression.name}" + ("" if keeps_changes(line) else "_memoryless")
    if line.aggregation.rule.name != "average":
        method += f"-{line.aggregation.rule.name}"
    if optimises(line):
        method += f"-{line.aggregation.server_optimizer.name}"
    if line.global_models > 1:
        method += f"-K{line.global_models}"
    if line.head_transfer:
        method += "-heads"
    if line.global_trainer is not None:
        method += f"-{line.global_trainer.name}"
        method += f"-{line.generator.name}" if line.generator else ""
    return f"{common_name(line)}-{method}-seed{line.seed}"


def common_name(line: Any, main: Model | None = None) -> str:
    """Name data, partition and architecture, by default the `main` one of a line."""
    model: str = (main or line.model).name
    if len(set(getattr(line, "architectures", ()))) > 1:
        model += "_and_others"
    return f"{short(line.data)}-{partition_name(line)}-{model}"


def partition_name(line: Any) -> str:
    """Name a partition."""
    alpha = getattr(line.partition, "alpha", None)
    name: str = line.partition.name
    return name + (f"{alpha:g}" if alpha is not None else "")


def short(data: Data) -> str:
    """Name a data set."""
    return re.sub(r"[^A-Za-z0-9]", "_", data.folder) if data.name == "parquet" else data.name
