"""Settings of config.yaml, and JSON schemas of all settings for editors."""

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from fedstage.settings.base import Count, Name, Positive, Settings
from fedstage.settings.experiments import Experiment, Style
from fedstage.settings.one_shot import OneShot
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength
from fedstage.settings.scores import Claim, ClaimList


class Execution(Settings):
    """How work is divided into jobs, and where; the bytes of results do not depend on it."""

    granularity: Literal["participant", "round", "segment"] = "participant"
    """What one job trains: one participant, or one segment of rounds; `round`: of one round."""
    segment_rounds: Positive = 25
    """Number of rounds per segment."""
    workers: Positive | None = None
    """Number of warm processes per machine; by default one per core."""
    workers_per_gpu: Positive = 1
    """Number of warm processes per GPU."""
    clients_per_gpu: Positive = 1
    """Number of clients of one job that train concurrently on its GPU."""
    gpu: Count = 0
    """Number of GPUs requested for each job if numerics.device is auto."""
    timeout: Positive | None = None
    """Time, in seconds, after which a stage counts as hung; by default one day."""


class Config(Settings):
    """Settings of config.yaml: experiments, targets, and how the work is executed."""

    targets: Annotated[list[str], Field(min_length=1)]
    """What to make: names of experiments, or files."""
    experiments: dict[Name, Experiment] = {}
    """Experiments defined in this file, by name."""
    claims: list[Claim] = []
    """Claims defined in this file."""
    data_folder: str | None = None
    """Folder of the raw data; by default the value of the environment variable FEDSTAGE_DATA."""
    plugins: list[str] = []
    """Python files, and folders of them, with your own methods, models and data sets."""
    keep: Literal["all", "needed"] = "all"
    """Files of rounds that stay on disk: `all`, or only files that are read (`needed`)."""
    execution: Execution = Execution()
    """How the work is divided into jobs and where they run."""

    def _faults(self) -> Iterator[str]:
        if self.keep == "needed" and self.execution.granularity == "participant":
            yield (
                "keep = 'needed': needs execution.granularity = 'round' or 'segment', because "
                "'participant' hands every file on from one job to another"
            )


# --- JSON schemas ---------------------------------------------------------------------------------
#
# JSON schemas of config.yaml, experiments and claims, for completion and checks in editors.
#
# pydantic writes them, with three additions: docstrings below fields describe the fields; a choice
# may have a short form; and the settings of a base, a cell or a method are *partial*, as only
# merged settings must be complete.

Schema = dict[str, Any]

FILES: dict[str, Any] = {"config": Config, "experiment": Experiment, "claims": ClaimList}
#: What settings of runs consist of.
_OF_RUNS = (Style, OneShot, Recipe, RunLength)
_PARTIAL: Schema = {"$ref": "#/$defs/PartialSettings"}
#: Editors support this draft best; it has all keywords that pydantic writes here.
_DRAFT = "http://json-schema.org/draft-07/schema#"


def write_schemas(folder: Path) -> list[Path]:
    """Write the schemas, including the settings of loaded plugins, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {folder / f"{name}.schema.json": json.dumps(one) for name, one in schemas().items()}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of file."""
    every = (*FILES.values(), *_OF_RUNS)
    _, generated = models_json_schema(
        [(kind, "validation") for kind in every], schema_generator=_Generator
    )
    definitions: Schema = generated["$defs"]
    for name in ("Experiment", "Scale"):
        definitions[name]["properties"]["base"] |= _PARTIAL
        definitions[name]["properties"]["methods"]["additionalProperties"] = _PARTIAL
    definitions["CellSettings"]["properties"]["settings"] |= _PARTIAL
    definitions["Choose"]["properties"]["compare_with"] |= _PARTIAL
    # A run may also start from a method, and a method from another.
    properties: Schema = {key: {"type": "string"} for key in ("method", "like")}
    for part in (definitions[kind.__name__]["properties"] for kind in _OF_RUNS):
        for key, schema in part.items():
            known = properties.get(key, schema)
            properties[key] = known if known == schema else {"anyOf": [known, schema]}
    properties["start"] = {"anyOf": [{"type": ["string", "null"]}, _PARTIAL]}
    definitions["PartialSettings"] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    head = {"$schema": _DRAFT, "$defs": definitions}
    refer = {name: {"$ref": f"#/$defs/{kind.__name__}"} for name, kind in FILES.items()}
    return {name: {**head, "allOf": [reference]} for name, reference in refer.items()}


class _Generator(GenerateJsonSchema):
    """Describes fields, and allows partial settings and short forms of choices."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """Return the schema of a settings class, of whose keys only files need any."""
        described, kind = super().model_schema(schema), schema["cls"]
        docstrings = _docstrings(kind)
        for name in docstrings.keys() & kind.model_fields.keys():
            key = kind.model_fields[name].alias or name
            described["properties"][key]["description"] = docstrings[name]
        if kind not in FILES.values():
            described.pop("required", None)
        return described

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> Schema:
        """Allow a choice to be its name, its name with settings, or settings alone."""
        options = {name: self.generate_inner(one) for name, one in schema["choices"].items()}
        named = {name: {"anyOf": [one, {"type": "null"}]} for name, one in options.items()}
        short = {"type": "object", "properties": named, "additionalProperties": False}
        return {"anyOf": [{"enum": list(options)}, short | {"maxProperties": 1}, *options.values()]}


def _docstrings(settings: type[Settings]) -> dict[str, str]:
    """Return the docstrings of a class's fields, including inherited ones, by the fields' names.

    pydantic could read these itself (`use_attribute_docstrings`), but at every import of the
    classes, which took a third of the time of an import of all settings.
    """
    kinds = (one for one in reversed(settings.__mro__) if issubclass(one, Settings))
    return {name: text for kind in kinds for name, text in _own_docstrings(kind).items()}


@cache
def _own_docstrings(kind: type[Settings]) -> dict[str, str]:
    [definition] = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef), "of a class"
    return {
        ast.unparse(field.target): inspect.cleandoc(ast.literal_eval(below.value))
        for field, below in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)
    }
