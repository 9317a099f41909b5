"""JSON schemas of config.yaml, experiments and claims, for completion and checks in editors.

They follow from the settings, with two differences. The settings of a base, of a scale's base and
of a method are *partial*: only what they lay over one another has to be complete, which the
workflow checks and a schema of one file cannot. And a choice may stand in a short form.

    python -m fedstage.settings.schemas workflow/schemas
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from fedstage.plan.runs import RunLength
from fedstage.settings.claims import ClaimFile
from fedstage.settings.config_file import Config
from fedstage.settings.experiments import Experiment
from fedstage.settings.lines import Line
from fedstage.settings.one_shot import OneShot

Schema = dict[str, Any]

#: Editors know this draft best; all keywords that pydantic writes here are in it.
DRAFT = "http://json-schema.org/draft-07/schema#"


def schemas() -> dict[str, Schema]:
    """Return the schemas by the names of their files."""
    return {
        "config.schema.json": _file_schema(Config),
        "experiment.schema.json": _file_schema(Experiment),
        "claims.schema.json": {"$schema": DRAFT, **_untitled(ClaimFile.model_json_schema())},
    }


def as_text(schema: Schema) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> None:
    """Write the schemas into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(as_text(schema), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Write the schemas into the folder that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m fedstage.settings.schemas")
    parser.add_argument("folder", type=Path, help="where config.schema.json and the other go")
    write_schemas(parser.parse_args(argv).folder)


def _file_schema(settings: type[BaseModel]) -> Schema:
    """Return the schema of a file, with partial settings in place of the free mappings."""
    schema = _untitled(settings.model_json_schema())
    definitions = schema.pop("$defs")
    experiment = definitions.get("Experiment", schema)
    partial = {"$ref": "#/$defs/PartialSettings"}
    experiment["properties"]["base"] = partial
    experiment["properties"]["methods"]["additionalProperties"] = partial
    definitions["Scale"]["properties"]["base"] = partial
    definitions["CellSettings"]["properties"]["settings"] = partial
    return {"$schema": DRAFT, **schema, "$defs": definitions | _partial_definitions()}


def _partial_definitions() -> Schema:
    """Return PartialSettings, all that a run is made of, and the definitions that it needs."""
    parts = [_partial(_untitled(part.model_json_schema())) for part in (Line, OneShot, RunLength)]
    definitions: Schema = {}
    properties: Schema = {"method": {"type": "string"}}
    for part in parts:
        definitions |= part["$defs"]
        properties |= part["properties"]
    # A method of the experiment stands for the file that it ends in.
    changed = {"$ref": "#/$defs/PartialSettings"}
    properties["start"] = {"anyOf": [{"type": "string"}, changed, {"type": "null"}]}
    definitions["PartialSettings"] = {
        "description": "Settings of runs, as far as they are not given elsewhere.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return definitions


def _untitled(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes of the names of keys."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # A title is text; `title` as the name of a property has a schema.
    return {
        key: _untitled(value)
        for key, value in schema.items()
        if key != "title" or isinstance(value, dict)
    }


def _partial(schema: Any) -> Any:
    """Return a schema in which no key is required, and choices may stand in their short forms."""
    if isinstance(schema, list):
        return [_partial(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _partial(value)
        for key, value in schema.items()
        if key != "required" or isinstance(value, dict)
    }
    return _with_short_forms(kept) if "discriminator" in kept else kept


def _with_short_forms(choice: Schema) -> Schema:
    """Return the schema of a choice: its name, its name with settings, or an object.

    The object needs no name, because settings alone are merged into a choice made before.
    """
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
