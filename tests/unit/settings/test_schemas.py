"""JSON schemas for editors: they accept the repository's files, and refuse what settings refuse."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from fedstage.settings.base import IN_WORDS
from fedstage.settings.config_file import schemas, write_schemas

REPOSITORY = Path(__file__).parents[3]
SCHEMAS = schemas()


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: 1e-3 is a number."""


EditorLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read(path):
    return yaml.load(path.read_text(), EditorLoader)


def faults(name, content):
    found = Draft7Validator(SCHEMAS[name]).iter_errors(content)
    return [f"{error.json_path}: {error.message}" for error in found]


def experiment(**base):
    return {"title": "An experiment", "base": base, "scales": {"default": None}}


def test_the_command_writes_a_valid_schema_of_each_kind_of_file(tmp_path):
    paths = write_schemas(tmp_path / "new")
    assert [path.name for path in paths] == [f"{name}.schema.json" for name in SCHEMAS]
    for path, schema in zip(paths, SCHEMAS.values(), strict=True):
        assert json.loads(path.read_text()) == schema
    Draft7Validator.check_schema(SCHEMAS["config"])


def test_what_a_pattern_allows_is_told_in_words():
    found = {json.loads(one) for one in re.findall(r'"pattern": (".*?")', json.dumps(SCHEMAS))}
    assert found
    assert found <= IN_WORDS.keys()


def test_settings_and_their_keys_are_described():
    for name, definition in SCHEMAS["config"]["$defs"].items():
        described = {"": definition, **definition["properties"]}
        missing = [key for key, one in described.items() if not one.get("description")]
        assert name == "PartialSettings" or set(missing) <= {"name"}, name


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("config", "config.yaml"),
        ("experiment", "workflow/**/experiments/*.yaml"),
        ("claims", "workflow/papers/*/claims.yaml"),
    ],
)
def test_files_of_the_repository_are_valid(name, pattern):
    paths = [path for path in REPOSITORY.glob(pattern) if "project" not in path.parts]  # plugins
    assert paths
    assert {path: found for path in paths if (found := faults(name, read(path)))} == {}


def test_the_library_of_methods_is_valid_as_methods_of_an_experiment():
    methods = read(REPOSITORY / "workflow/methods.yaml")
    assert faults("experiment", experiment() | {"methods": methods}) == []


def test_a_choice_may_have_any_form_and_settings_may_be_partial():
    short = ("iid", {"dirichlet": {"alpha": 0.1}}, {"shards": None})
    for partition in (*short, {"name": "dirichlet", "alpha": 0.1}, {"alpha": 0.5}):
        assert faults("experiment", experiment(partition=partition)) == [], partition
    partial = experiment(client={"epochs": 5, "steps": None}, server=None, ensemble=None)
    assert faults("experiment", partial) == []


@pytest.mark.parametrize(
    "base",
    [
        {"clints": 10},
        {"clients": 0},
        {"model": {"resnet20": {"depth": 20}}},
        {"partition": {"dirichlet": {"alpha": 1}, "iid": {}}},
        {"client": {"schedule": {"step": {"milestones": [1.5]}}}},
        {"numerics": {"device": "tpu"}},
    ],
    ids=str,
)
def test_a_wrong_key_value_or_type_is_refused_wherever_settings_stand(base):
    for content in (
        experiment(**base),
        experiment() | {"methods": {"mine": base}},
        experiment() | {"scales": {"small": {"base": base}}},
    ):
        assert faults("experiment", content)
        assert faults("config", {"targets": ["mine"], "experiments": {"mine": content}})


def test_files_need_their_parts():
    assert faults("experiment", {"base": {}, "scales": {"default": None}})
    assert faults("config", {})
    assert faults("config", {"targets": ["quickstart"], "target": "quickstart"})
