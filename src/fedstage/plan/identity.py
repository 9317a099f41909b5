"""Names of folders, and the digests in which they end.

A folder's name is readable first and ends in a digest of the settings that determine its content,
in canonical form: fields at their defaults left out, 1 equal to 1.0. Changing a default changes
the meaning of old digests, so it must raise `SCHEMA_VERSION` (a test holds the two together).
"""

import re
from functools import cache
from typing import Any

from fedstage.plan.digests import canonical, digest
from fedstage.plan.one_shot_sharing import unquantised
from fedstage.plan.participants import binding, delays, groups_drawn
from fedstage.settings.aggregation import ServerAverage, ServerOptimiser
from fedstage.settings.base import alternatives
from fedstage.settings.data import Data
from fedstage.settings.exchange import keeps_changes, keeps_statistics, optimises
from fedstage.settings.generators import RoundGenerator
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.local_training import LocalTrainer
from fedstage.settings.models import Model
from fedstage.settings.quantisation import Quantisation

#: Marks, in the names of lines, clients that keep their own running statistics, and compression.
_LOCAL_STATISTICS = "local_bn"
_COMPRESSED = "stc"


@cache
def data_id(data: Data) -> str:
    """Name the folder of a data set."""
    return f"{short(data)}-{digest(canonical(data))}"


@cache
def partition_id(line: Line | LocalLine) -> str:
    """Name the folder of a partition: data, scheme, clients, roles and seed."""
    content = partition_settings(line) | {"data": canonical(line.data)}
    readable = f"{short(line.data)}-{partition_name(line)}-seed{line.seed}"
    return f"{readable}-{digest(content)}"


def partition_settings(line: Line | LocalLine) -> dict[str, Any]:
    """Return the settings that, with the data, determine a partition."""
    settings = {
        "clients": line.clients,
        "partition": canonical(line.partition),
        "validation": line.validation,
        "seed": line.seed,
    }
    if isinstance(line, LocalLine) and line.aggregator_fraction:
        settings["aggregator_fraction"] = line.aggregator_fraction
    if line.core is not None and line.core.samples == "share":
        settings["core"] = canonical(line.core)
    return settings


@cache
def participation_id(line: Line) -> str:
    """Name the folder of a participation plan, by all that determines it."""
    name, rule = f"{line.participants}_of_{line.clients}", binding(line)
    if groups := groups_drawn(line):
        name += f"-{groups}_groups"
    determined_by: list[Any] = []
    if line.participation == "by_samples":
        determined_by.append(partition_id(line))
    if line.participation != "uniform":
        name += f"-{line.participation}"
    if rule is not None:
        determined_by.append(canonical(rule))
        name += "-bound"
    if how := delays(line):
        determined_by.append(canonical(how))
        name += f"-{how.staleness.name}" + ("_withdrawn" if how.withdraw_stale else "")
    name += f"-seed{line.seed}"
    if not determined_by:
        return name
    return f"{name}-{digest(determined_by[0] if len(determined_by) == 1 else determined_by)}"


@cache
def initial_id(data: Data, model: Model, seed: int) -> str:
    """Name the folder of initial weights; the data set gives the shape and the classes."""
    content = {"data": canonical(data), "model": canonical(model), "seed": seed}
    return f"{short(data)}-{model.name}-seed{seed}-{digest(content)}"


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


@cache
def local_id(line: LocalLine) -> str:
    """Name the folder of models that are trained without federation."""
    method = "pooled" if line.pooled else "core" if line.on_core else "alone"
    content = canonical(unquantised(line))
    return f"{common_name(line)}-{method}-seed{line.seed}-{digest(content)}"


@cache
def quantisation_id(quantisation: Quantisation) -> str:
    """Name the folder of a precision of models: `fp32` if they are not quantised."""
    if quantisation.name == "none":
        return "fp32"
    return f"{quantisation.name}-{digest(canonical(quantisation))}"


@cache
def precision_id(line: LocalLine) -> str:
    """Name the models of a line, with their quantisation."""
    return f"{local_id(line)}/{quantisation_id(line.quantisation)}"


def is_stateful_name() -> str:
    """Return a pattern for the ids of lines that keep state between rounds."""
    trainers = [kind for kind in alternatives(LocalTrainer) if getattr(kind, "keeps_state", False)]
    optimisers = [kind for kind in alternatives(ServerOptimiser) if kind is not ServerAverage]
    named = [name for kind in (*trainers, *optimisers) for name in kind.names()]
    return rf"[^/]+-(?:{'|'.join((*named, _LOCAL_STATISTICS, _COMPRESSED))})-[^/]+"


def is_closed_form_name() -> str:
    """Return a pattern for the ids of students whose head is computed from moments of features."""
    return r"[^/]+-closed_form(?:-without_[^/]+)?-seed[^/]+"


def is_generating_name() -> str:
    """Return a pattern for the ids of lines whose students learn from images of a generator."""
    named = [name for kind in alternatives(RoundGenerator) for name in kind.names()]
    return rf"[^/]+-(?:{'|'.join(named)})-seed[^/]+"


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
