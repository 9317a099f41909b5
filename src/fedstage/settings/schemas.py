"""JSON schemas of config.yaml, experiments and claims, for completion and checks in editors.

They follow from the settings, with two differences. The settings of a base, of a scale's base and
of a method are *partial*: only the merged settings must be complete, which the workflow checks and
a schema of one file cannot. And a choice may have a short form.

    python -m fedstage.settings.schemas workflow/schemas
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedstage.settings.claims import ClaimList
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment
from fedstage.settings.one_shot import OneShot
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

Schema = dict[str, Any]

#: Editors support this draft best; it has all keywords that pydantic writes here.
DRAFT = "http://json-schema.org/draft-07/schema#"


def schemas() -> dict[str, Schema]:
    """Return the schemas by the names of their files."""
    return {
        "config.schema.json": _file_schema(Config),
        "experiment.schema.json": _file_schema(Experiment),
        "claims.schema.json": {
            "$schema": DRAFT,
            **_without("title", ClaimList.model_json_schema()),
        },
    }


def as_text(schema: Schema) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str] | None = None) -> None:
    """Write the schemas into the folder that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m fedstage.settings.schemas")
    parser.add_argument("folder", type=Path, help="folder of config.schema.json and the others")
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(as_text(schema), encoding="utf-8")


def _file_schema(settings: type[BaseModel]) -> Schema:
    """Return the schema of a file, with partial settings for mappings of type `Raw`."""
    schema = _without("title", settings.model_json_schema())
    definitions = schema.pop("$defs")
    experiment = definitions.get("Experiment", schema)
    partial = {"$ref": "#/$defs/PartialSettings"}
    experiment["properties"]["base"] = partial
    experiment["properties"]["methods"]["additionalProperties"] = partial
    definitions["Scale"]["properties"]["base"] = partial
    definitions["CellSettings"]["properties"]["settings"] = partial
    return {"$schema": DRAFT, **schema, "$defs": definitions | _partial_definitions()}


def _partial_definitions() -> Schema:
    """Return PartialSettings, all settings of a run, and the definitions that it refers to."""
    definitions: Schema = {}
    # Only methods have a label, and may be like another, which the workflow checks.
    properties: Schema = {key: {"type": "string"} for key in ("method", "label", "like")}
    for part in (Recipe, OneShot, RunLength):
        schema = _without("required", _without("title", part.model_json_schema()), _short_forms)
        definitions |= schema["$defs"]
        properties |= _either(properties, schema["properties"])
    # A method of the experiment stands for the file of its final model.
    changed = {"$ref": "#/$defs/PartialSettings"}
    properties["start"] = {"anyOf": [{"type": "string"}, changed, {"type": "null"}]}
    definitions["Choose"]["properties"]["compare_with"] = changed
    definitions["PartialSettings"] = {
        "description": "Settings of runs; the others are given elsewhere.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return definitions


def _either(known: Schema, more: Schema) -> Schema:
    """Return the properties of a part; where another has one of the name, either may be given."""
    return {
        key: one if known.get(key, one) == one else {"anyOf": [known[key], one]}
        for key, one in more.items()
    }


def _without(keyword: str, schema: Any, change: Callable[[Schema], Schema] = dict) -> Any:
    """Return a schema without a keyword at any depth, each object then changed."""
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
    """Allow for a choice its name, its name with settings, or an object.

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
