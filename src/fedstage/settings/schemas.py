"""JSON schemas of config.yaml, experiments and claims, for completion and checks in editors.

They follow from the settings, with two differences. The settings of a base, of a scale's base and
of a method are *partial*: only the merged settings must be complete. The workflow checks this, but
a schema of one file cannot. In addition, a choice may have a short form.

    python -m fedstage.settings.schemas workflow/schemas
"""

import argparse
import ast
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from fedstage.settings.base import Settings
from fedstage.settings.claims import ClaimList
from fedstage.settings.config_file import Config
from fedstage.settings.one_shot import OneShot
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

Schema = dict[str, Any]

#: Editors support this draft best; it has all keywords that pydantic writes here.
DRAFT = "http://json-schema.org/draft-07/schema#"


#: The file with all definitions, to which the schemas of files refer; all are in one folder.
DEFINITIONS = "settings.schema.json"
FILES = {"config": "Config", "experiment": "Experiment", "claims": "ClaimList"}


def schemas() -> dict[str, Schema]:
    """Return the schemas by the names of their files; each definition occurs once."""
    files = {
        f"{name}.schema.json": {"$schema": DRAFT, "$ref": f"{DEFINITIONS}#/$defs/{settings}"}
        for name, settings in FILES.items()
    }
    return {DEFINITIONS: {"$schema": DRAFT, "$defs": _definitions()}, **files}


def as_text(schema: Schema) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Write the schemas into the folder that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m fedstage.settings.schemas")
    parser.add_argument("folder", type=Path, help="folder of config.schema.json and the others")
    write_schemas(parser.parse_args(argv).folder)


def write_schemas(folder: Path) -> None:
    """Write the schemas into a folder, including the settings of loaded plugins."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(as_text(schema), encoding="utf-8")


class _Described(GenerateJsonSchema):
    """Describes properties by the docstrings below their fields.

    pydantic could read these itself (`use_attribute_docstrings`), but would do so at every import
    of the classes, which took a third of the time of an import of all settings.
    """

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """Return the schema of a settings class."""
        described = super().model_schema(schema)
        docstrings = _docstrings(schema["cls"])
        for name, field in schema["cls"].model_fields.items():
            if name in docstrings:
                described["properties"][field.alias or name]["description"] = docstrings[name]
        return described


def _docstrings(settings: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, including inherited ones, by the fields' names."""
    found: dict[str, str] = {}
    for kind in reversed(settings.__mro__):
        if issubclass(kind, Settings):
            [definition] = ast.parse(dedent(inspect.getsource(kind))).body
            assert isinstance(definition, ast.ClassDef), "of a class"
            found |= dict(_below_fields(definition.body))
    return found


def _below_fields(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(statements):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)


def _definitions() -> Schema:
    """Return the definitions of all files, with partial settings for mappings of type `Raw`."""
    _, schema = models_json_schema(
        [(kind, "validation") for kind in (Config, ClaimList)], schema_generator=_Described
    )
    definitions: Schema = _without("title", schema["$defs"]) | _partial_definitions()
    for settings, key in (("Experiment", "base"), ("Scale", "base"), ("CellSettings", "settings")):
        _refer(definitions[settings]["properties"], key)
    definitions["Experiment"]["properties"]["methods"]["additionalProperties"] = _PARTIAL
    for definition in definitions.values():
        if "name" in definition["properties"]:
            definition["properties"]["name"]["description"] = "Name of the alternative."
    return dict(sorted(definitions.items()))


_PARTIAL: Schema = {"$ref": "#/$defs/PartialSettings"}
#: Only methods have these keys and may start from another method, which the workflow checks.
_OF_METHODS = {
    "method": "Name of the method in tables.",
    "label": "Label of the method in tables and figures for people.",
    "colour": "Colour of the method in figures; by default it follows from the name.",
    "marker": "Marker of the method in figures; by default it follows from the name.",
    "like": "The method whose settings this one starts from.",
}


def _partial_definitions() -> Schema:
    """Return PartialSettings, all settings of a run, and the definitions that it refers to."""
    definitions: Schema = {}
    properties: Schema = {
        key: {"type": "string", "description": text} for key, text in _OF_METHODS.items()
    }
    for part in (Recipe, OneShot, RunLength):
        schema = _without(
            "required",
            _without("title", part.model_json_schema(schema_generator=_Described)),
            _short_forms,
        )
        definitions |= schema["$defs"]
        properties |= _either(properties, schema["properties"])
    # A method of the experiment may be given in place of the file of its final model.
    _refer(properties, "start", {"anyOf": [{"type": "string"}, _PARTIAL, {"type": "null"}]})
    _refer(definitions["Choose"]["properties"], "compare_with")
    definitions["PartialSettings"] = {
        "description": "Settings of runs; the others are given elsewhere.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return definitions


def _refer(properties: Schema, key: str, schema: Schema = _PARTIAL) -> None:
    """Replace a property's schema, except for its description."""
    properties[key] = {"description": properties[key]["description"], **schema}


def _either(known: Schema, more: Schema) -> Schema:
    """Return the properties of a part; where a known property has the same name, allow either."""
    either = dict(more)
    for key in more.keys() & known.keys():
        if known[key] != more[key]:
            described = known[key]["description"]
            either[key] = {"description": described, "anyOf": [known[key], more[key]]}
    return either


def _without(keyword: str, schema: Any, change: Callable[[Schema], Schema] = dict) -> Any:
    """Return a schema without a keyword at any depth, with `change` applied to each object."""
    if isinstance(schema, list):
        return [_without(keyword, item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # A property of that name has a schema; the keyword has text or a list.
    kept = {
        key: value for key, value in schema.items() if key != keyword or isinstance(value, dict)
    }
    return change({key: _without(keyword, value, change) for key, value in kept.items()})


def _short_forms(choice: Schema) -> Schema:
    """Allow a choice to be its name, its name with settings, or an object.

    The object needs no name, because settings alone are merged into an earlier choice.
    """
    if "oneOf" not in choice:  # `discriminator` may be a property
        return choice
    options: dict[str, str] = choice["discriminator"]["mapping"]
    rest = {key: value for key, value in choice.items() if key not in ("discriminator", "oneOf")}
    with_settings = {
        "type": "object",
        "properties": {
            name: {"anyOf": [{"$ref": option}, {"type": "null"}]}
            for name, option in options.items()
        },
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    objects = [{"$ref": option} for option in dict.fromkeys(options.values())]
    return {**rest, "anyOf": [{"enum": list(options)}, with_settings, *objects]}


if __name__ == "__main__":
    main()
