"""Fingerprints of the source that a stage's results depend on: what rules carry as `source`.

Snakemake compares a rule's shell command and its params with those that a file was made with; the
package behind the command it does not see. So each rule has in its params a digest of the modules
that its stage can reach: the closure of its imports, of each module the syntax tree without
docstrings. An edit reruns the stages that reach it; an edit of comments, docstrings or formatting
reruns nothing.

Two kinds of imports do not count. Modules of `DECLARATIONS` say what settings there are, and a
result stands under the settings that it was made with. And where a module imports every alternative
of a choice, such as all models, a line reaches the one that it names (`DISPATCHERS`), as it does in
packages that find their modules by name. What a line names says `parts_of`.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.evaluated import parse_evaluated
from fedstage.plan.members import member_kinds, parse_sampled
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.numerics import Numerics
from fedstage.settings.one_shot import OneShotLine

#: The folder of the package; tests take fingerprints of a changed copy.
PACKAGE = Path(__file__).parent.parent

#: Modules that reach a result only through what stands in its settings, in its folder's name or in
#: the params and inputs of its rule: an edit changes these, or nothing. Nothing that computes may
#: be put here.
DECLARATIONS = frozenset(
    {
        # The version number, and the subcommands with their help texts.
        "fedstage",
        "fedstage.stages",
        "fedstage.algorithm",
        "fedstage.algorithm.aggregation",
        "fedstage.algorithm.exchange",
        "fedstage.algorithm.one_shot",
        "fedstage.data",
        "fedstage.plan",
        "fedstage.results",
        "fedstage.results.figures",
        "fedstage.results.round_times",
        "fedstage.storage",
        # Names, bounds and defaults of settings. Their values are in line.yaml and in params; a
        # changed default raises `lines.SCHEMA_VERSION`, which is part of every folder's name.
        "fedstage.settings.binding",
        "fedstage.results.communication",
        "fedstage.results.communication.described",
        "fedstage.results.claims",
        "fedstage.settings.claims",
        "fedstage.settings",
        *(
            f"fedstage.settings.{kind}"
            for kind in (
                "aggregation",
                "aggregators",
                "base",
                "data",
                "ensembles",
                "lines",
                "local_training",
                "models",
                "numerics",
                "one_shot",
                "optimisation",
                "partitions",
                "quantisation",
                "samples",
                "scores",
            )
        ),
        "fedstage.settings.initial_model",
        "fedstage.settings.partition",
        "fedstage.settings.published",
        "fedstage.results.simulation",
        "fedstage.settings.simulation",
        # From YAML to settings: what is refused, and in which words.
        "fedstage.results.cells",
        "fedstage.errors",
        "fedstage.experiments",
        "fedstage.experiments.grid",
        "fedstage.plan.runs",
        "fedstage.settings.experiments",
        "fedstage.settings.merging",
        "fedstage.settings.validation",
        "fedstage.storage.yaml_files",
        # Where files are, which lines share them, and which of them a stage reads: its inputs.
        "fedstage.plan.artefacts",
        "fedstage.plan.sharing",
        "fedstage.plan.rounds",
        "fedstage.settings.slots",
    }
)

#: Declarations that some stages compute from: results about the edges of the DAG, and claims about
#: cells of a table.
COMPUTED_FROM = {
    **dict.fromkeys(
        ("properties", "simulation", "round_times"),
        frozenset({"fedstage.plan.artefacts", "fedstage.plan.sharing", "fedstage.settings.slots"}),
    ),
    "communication": frozenset(
        {
            "fedstage.results.cells",
            "fedstage.plan.artefacts",
            "fedstage.plan.sharing",
            "fedstage.settings.slots",
        }
    ),
    "claims": frozenset({"fedstage.results.cells"}),
}

#: Package -> name in the settings -> module, where the module's name is another.
MODULES = {
    "data.datasets": dict.fromkeys(("cifar10", "cifar100", "svhn"), "torchvision_data"),
    "models": {
        **dict.fromkeys(("resnet8", "resnet20", "resnet32", "resnet56"), "resnet"),
        "wrn16_2": "wide_resnet",
        "efficientnet_b0": "efficientnet",
        "resnet8_wide": "resnet_wide",
    },
}

_MODELS = frozenset(
    {
        "fedstage.models.cnn_small",
        "fedstage.models.deep_mil",
        "fedstage.models.distilbert",
        "fedstage.models.efficientnet",
        "fedstage.models.logistic_regression",
        "fedstage.models.resnet",
        "fedstage.models.resnet_wide",
        "fedstage.models.wide_resnet",
    }
)

_COMPRESSION = frozenset({"fedstage.algorithm.exchange.compression"})

#: Modules that import several alternatives, of which a line reaches those that are its parts. An
#: alternative that is missing here is reached by every line.
DISPATCHERS = {
    "fedstage.training.passes": frozenset({"fedstage.training.compiled"}),
    "fedstage.data.datasets": frozenset(
        {
            "fedstage.data.datasets.ag_news",
            "fedstage.data.datasets.camelyon16",
            "fedstage.data.datasets.digits",
            "fedstage.data.datasets.heart_disease",
            "fedstage.data.datasets.isic2019",
            "fedstage.data.datasets.parquet",
            "fedstage.data.datasets.torchvision_data",
        }
    ),
    "fedstage.models.build": _MODELS,
    "fedstage.models.initialisation": _MODELS,
    "fedstage.stages.initial_model": frozenset({"fedstage.models.pretrained"}),
    # What only some ensembles have as members, and what only some students do.
    "fedstage.stages.logits": frozenset({"fedstage.algorithm.ensemble_trainers.sampling.draw"}),
    "fedstage.stages.distillation": frozenset({"fedstage.algorithm.global_trainers.drop_worst"}),
    "fedstage.algorithm.global_trainers.student": frozenset(
        {
            "fedstage.algorithm.global_trainers.early_stopping",
            "fedstage.algorithm.global_trainers.swa",
        }
    ),
    # What only lines do that quantise, and that compress their updates.
    "fedstage.algorithm.one_shot.client_models": frozenset({"fedstage.models.int8"}),
    "fedstage.stages.local_training": _COMPRESSION,
    "fedstage.stages.aggregation": _COMPRESSION,
    "fedstage.algorithm.exchange.traffic": _COMPRESSION,
    "fedstage.stages.segment": frozenset(
        {"fedstage.stages.distillation", "fedstage.stages.logits"}
    ),
}

#: The field of a line that chooses, a dotted path -> the package of the chosen module.
CHOSEN_FROM = {
    "data": "data.datasets",
    "partition": "data.partitions",
    "model": "models",
    "local": "algorithm.local_trainers",
    "client.loss": "training.losses",
    "aggregation.server_optimizer": "algorithm.aggregation.server_optimizers",
    "ensemble": "algorithm.ensemble_trainers",
    "aggregator": "algorithm.one_shot.aggregators",
    "aggregator_training": "algorithm.one_shot.aggregator_training",
    "aggregator_training.server_optimizer": "algorithm.aggregation.server_optimizers",
    "distillation": "algorithm.one_shot.transfers",
    "student": "models",
}

#: Which choices of a line the code of a stage depends on; what is not here comes through files.
CHOICES_OF = {
    "dataset": ("data",),
    "partition": ("partition",),
    "initial_model": ("model",),
    "local_training": ("model", "local", "client.loss"),
    "cohort": ("model", "local", "client.loss"),
    "aggregation": ("model", "local", "aggregation.server_optimizer"),
    "logits": ("model",),
    "distillation": ("model", "ensemble"),
    "segment": ("model", "local", "client.loss", "aggregation.server_optimizer"),
    "logits_segment": ("model",),
    "evaluation": ("model",),
    "local_model": ("model", "client.loss"),
    "local_evaluation": ("model",),
    "quantised_model": ("model",),
    "client_logits": ("model",),
    "aggregator": (
        "model",
        "aggregator",
        "aggregator_training",
        "aggregator_training.server_optimizer",
    ),
    "distilled_model": ("student", "aggregator", "distillation"),
    "one_shot_evaluation": ("model", "student", "aggregator"),
}

#: The stages that send and receive updates, compressed where a line says so.
SENDING = frozenset({"local_training", "cohort", "segment", "aggregation"})

#: The stages that make or ask clients' models, quantised where a line says so.
ASKING = frozenset({"quantised_model", "client_logits", "local_evaluation"})

#: The stages that train, with compiled code where numerics say so.
COMPILED = frozenset(
    {"local_training", "cohort", "segment", "distillation", "local_model", "distilled_model"}
)

#: The stages that a segment calls, and the segment that does.
SEGMENT_OF = {
    "local_training": "segment",
    "cohort": "segment",
    "aggregation": "segment",
    "distillation": "segment",
    "logits": "logits_segment",
}

_ONLY_FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """What is known of a module: a digest of its code, and the modules that it imports."""

    digest: str
    imports: frozenset[str]


def module_of(package: str, name: str) -> str:
    """Return the module of a choice: ``module_of("models", "resnet20")`` is ``models.resnet``."""
    return f"{package}.{MODULES.get(package, {}).get(name, name)}"


def parts_of(
    line: object, stage: str, evaluated: str | None = None, members: str | None = None
) -> tuple[str, ...]:
    """Return the parts of a line that a stage reaches, such as ``local_trainers.fedprox``.

    Parameters
    ----------
    line : Line, LocalLine or other settings
        Any object with the choices of the stage, such as `catalogue.Initial`.
    evaluated : str, optional
        What an evaluation scores: ``global_model`` or the name of an ensemble.
    members : str, optional
        The kind of members whose logits are computed.
    """
    parts = [
        module_of(CHOSEN_FROM[field], choice.name)
        for field in CHOICES_OF.get(stage, ())
        for choice in _chosen(line, field)
    ]
    if stage == "segment" and isinstance(line, Line) and line.global_trainer is not None:
        parts += ["stages.logits", "stages.distillation", *parts_of(line, "distillation")]
        for kind in member_kinds(line.ensemble) if line.ensemble is not None else ():
            parts += parts_of(line, "logits", members=kind)
    if stage in ("distillation", "distilled_model") and isinstance(line, Line | OneShotLine):
        parts += _ways_to_teach(line)
    if stage in SENDING and isinstance(line, Line) and line.compression.name != "none":
        parts.append("algorithm.exchange.compression")
    if stage in ASKING and isinstance(line, LocalLine) and line.quantisation.name != "none":
        parts.append(f"models.{line.quantisation.name}")
    if stage == "initial_model" and getattr(getattr(line, "model", None), "weights", None):
        parts.append("models.pretrained")
    if stage in COMPILED and getattr(line, "numerics", Numerics()).compile:
        parts.append("training.compiled")
    if members is not None and parse_sampled(members) is not None:
        parts.append("algorithm.ensemble_trainers.sampling.draw")
    if evaluated not in (None, "global_model"):
        parts.append(module_of("algorithm.ensemble_trainers", parse_evaluated(str(evaluated)).name))
    return tuple(sorted(set(parts)))


def _chosen(line: object, field: str) -> tuple[Any, ...]:
    """Return what a line chooses, of models those of all groups or clients.

    Nothing where an optional part that would choose is not there.
    """
    choice: Any = line
    for name in field.split("."):
        choice = getattr(choice, name, None)
    others = getattr(line, "architectures", ()) if field == "model" else ()
    return (*([] if choice is None else [choice]), *others)


def _ways_to_teach(line: Line | OneShotLine) -> Iterator[str]:
    """Yield the modules of the server's settings that are not every line's."""
    if line.server is None:
        return
    if line.server.drop_worst != "none":
        yield "algorithm.global_trainers.drop_worst"
    if line.server.early_stopping is not None:
        yield "algorithm.global_trainers.early_stopping"
    if line.server.swa is not None:
        yield "algorithm.global_trainers.swa"


def source_of(
    line: object, stage: str, evaluated: str | None = None, members: str | None = None
) -> str:
    """Return the fingerprint that the rule of a stage carries for a line.

    The rounds of a line may be made by jobs of one stage each or by segments, and a run may go on
    in the other way: so all their rules carry the fingerprint of the segment. Next to nothing is
    lost by it: what stands under a distilled line was made from a student, and of what stands
    under another line only the first updates were made from nothing that was aggregated.
    """
    job = SEGMENT_OF.get(stage, stage)
    if job == "logits_segment" and isinstance(line, Line) and line.global_trainer is not None:
        job = "segment"
    return stage_fingerprint(job, parts_of(line, job, evaluated, members))


@cache
def stage_fingerprint(stage: str, parts: tuple[str, ...] = (), package: Path = PACKAGE) -> str:
    """Return 12 hexadecimal digits that change with the code that a stage can reach.

    Parameters
    ----------
    parts : tuple of str
        The modules that the line chooses, of `parts_of`.
    package : Path
        The folder of the package.

    Raises
    ------
    FedstageError
        If there is no such stage or part.
    """
    digest = hashlib.sha256()
    for module in sorted(reachable(stage, parts, package)):
        digest.update(f"{module} {module_digest(module, package)}\n".encode())
    return digest.hexdigest()[:12]


def reachable(stage: str, parts: tuple[str, ...] = (), package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules whose code can reach the results of a stage with these parts."""
    start = {f"fedstage.stages.{stage}", *(f"fedstage.{name}" for name in parts)}
    found: set[str] = set()
    declared = DECLARATIONS - COMPUTED_FROM.get(stage, frozenset())
    waiting = (start | _parents(start)) - declared
    while waiting:
        module = waiting.pop()
        found.add(module)
        edges = imports(module, package) - DISPATCHERS.get(module, frozenset())
        waiting |= edges - declared - found
    return frozenset(found)


def module_digest(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a module's syntax tree without docstrings."""
    return _source(module, package).digest


def imports(module: str, package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top or inside functions.

    Packages count as imported with their modules, for their ``__init__`` runs. What is imported
    under ``if TYPE_CHECKING`` only does not count.
    """
    return _source(module, package).imports


@cache
def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the file of each module of the package."""
    found = {}
    for path in package.rglob("*.py"):
        names = ("fedstage", *path.relative_to(package).with_suffix("").parts)
        found[".".join(names).removesuffix(".__init__")] = path
    return found


@cache
def _source(module: str, package: Path) -> Source:
    path = modules(package).get(module)
    if path is None:
        raise FedstageError(f"{module}: no such module in {package}")
    tree = ast.parse(path.read_bytes(), str(path))
    digest = hashlib.sha256(_text(tree).encode()).hexdigest()
    home = module if path.name == "__init__.py" else module.rpartition(".")[0]
    named = {name for node in _import_statements(tree) for name in _imported(node, home)}
    inside = named & modules(package).keys()
    return Source(digest, frozenset(inside | _parents(inside)))


def _parents(names: Iterable[str]) -> set[str]:
    """Return the packages that modules are in."""
    found = set()
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            found.add(name)
    return found


# --- syntax trees ---------------------------------------------------------------------------------


def _text(node: Any) -> str:
    """Write a syntax tree without docstrings and positions.

    Unlike `ast.dump`, it leaves out fields that are empty, so that versions of Python whose trees
    differ in such fields give the same.
    """
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, _field(node, name)) for name in node._fields)
    written = (f"{name}={_text(value)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({','.join(written)})"


def _field(node: ast.AST, name: str) -> Any:
    """Return a field of a node, a body without its docstring."""
    value = getattr(node, name, None)
    if name != "body" or not isinstance(node, _DOCUMENTED):
        return value
    match value:
        case [ast.Expr(ast.Constant(str())), *code]:
            return code
    return value


def _import_statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports below a node that are made when the program runs."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test) in _ONLY_FOR_TYPES:
        children = node.orelse
    for child in children:
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _import_statements(child)


def _imported(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[str]:
    """Yield what an import in package `home` may have imported: modules, and names in them."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    origin = resolve_name("." * node.level + (node.module or ""), home)
    yield origin
    yield from (f"{origin}.{alias.name}" for alias in node.names)
