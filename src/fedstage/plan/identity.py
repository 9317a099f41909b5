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
from fedstage.settings.models import Model
from fedstage.settings.recipes import Recipe

#: Marks, in the names of recipes, clients that keep their own running statistics, and compression.
_LOCAL_STATISTICS = "local_bn"
_COMPRESSED = "stc"


@cache
def training_name(recipe: Recipe) -> str:
    """Return the readable beginning of the name of a folder of rounds."""
    method: str = recipe.local.name
    if keeps_statistics(recipe):
        method += f"-{_LOCAL_STATISTICS}"
    if recipe.compression.name != "none":
        method += f"-{recipe.compression.name}" + ("" if keeps_changes(recipe) else "_memoryless")
    if recipe.aggregation.rule.name != "average":
        method += f"-{recipe.aggregation.rule.name}"
    if optimises(recipe):
        method += f"-{recipe.aggregation.server_optimizer.name}"
    if recipe.global_models > 1:
        method += f"-K{recipe.global_models}"
    if recipe.head_sharing:
        method += "-heads"
    if recipe.global_trainer is not None:
        method += f"-{recipe.global_trainer.name}"
        method += f"-{recipe.generator.name}" if recipe.generator else ""
    return f"{common_name(recipe)}-{method}-seed{recipe.seed}"


def common_name(recipe: Any, main: Model | None = None) -> str:
    """Name data, partition and architecture, by default the `main` one of a recipe."""
    model: str = (main or recipe.model).name
    if len(set(getattr(recipe, "architectures", ()))) > 1:
        model += "_and_others"
    return f"{short(recipe.data)}-{partition_name(recipe)}-{model}"


def partition_name(recipe: Any) -> str:
    """Name a partition."""
    alpha = getattr(recipe.partition, "alpha", None)
    name: str = recipe.partition.name
    return name + (f"{alpha:g}" if alpha is not None else "")


def short(data: Data) -> str:
    """Name a data set."""
    return re.sub(r"[^A-Za-z0-9]", "_", data.folder) if data.name == "parquet" else data.name
