import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from fedstage.settings.patterns import IN_WORDS
from fedstage.settings.schemas import FILES, as_text, main, schemas

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "workflow/schemas"
EXPERIMENTS = sorted((REPOSITORY / "workflow").glob("**/experiments/*.yaml"))
CLAIMS = sorted((REPOSITORY / "workflow/papers").glob("*/claims.yaml"))


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: 1e-3 is a number."""


EditorLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def test_what_a_pattern_allows_is_told_in_words():
    texts = [path.read_text() for path in FOLDER.glob("*.json")]
    found = {json.loads(one) for text in texts for one in re.findall(r'"pattern": (".*")', text)}
    assert found
    assert found <= IN_WORDS.keys()


def read(path):
    return yaml.load(path.read_text(), EditorLoader)


SCHEMAS = schemas()
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def faults(name, content):
    validator = Draft7Validator(SCHEMAS[name], registry=REGISTRY)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]


def experiment(**base):
    return {"title": "An experiment", "base": base, "scales": {"default": None}}


def faults_of_base(**base):
    return faults("experiment.schema.json", experiment(**base))


def test_files_are_what_the_settings_give_and_the_command_writes(tmp_path):
    main([str(tmp_path / "new")])
    for folder in (FOLDER, tmp_path / "new"):
        written = {path.name: path.read_text() for path in folder.iterdir()}
        assert written == {name: as_text(schema) for name, schema in SCHEMAS.items()}, (
            "the settings have changed: python -m fedstage.settings.schemas workflow/schemas"
        )


def test_schemas_are_valid_and_each_definition_stands_once_and_is_referred_to():
    for schema in SCHEMAS.values():
        Draft7Validator.check_schema(schema)
    used = re.findall(r'"(?:settings\.schema\.json)?#/\$defs/(\w+)"', json.dumps(SCHEMAS))
    assert set(used) == set(SCHEMAS["settings.schema.json"]["$defs"])
    assert not any("$defs" in SCHEMAS[name] for name in SCHEMAS if name.split(".")[0] in FILES)


def test_all_definitions_and_their_properties_are_described():
    for name, definition in SCHEMAS["settings.schema.json"]["$defs"].items():
        for key, described in {"": definition, **definition["properties"]}.items():
            assert described.get("description"), f"{name}.{key}: give the field a docstring"


@pytest.mark.parametrize(
    ("name", "paths"),
    [("config", [REPOSITORY / "config.yaml"]), ("experiment", EXPERIMENTS), ("claims", CLAIMS)],
)
def test_files_of_the_repository_are_valid(name, paths):
    assert paths
    for path in paths:
        assert faults(f"{name}.schema.json", read(path)) == [], path


def test_library_of_methods_is_valid_as_methods_of_an_experiment():
    content = experiment() | {"methods": read(REPOSITORY / "workflow/methods.yaml")}
    assert faults("experiment.schema.json", content) == []


def test_choice_may_stand_in_any_of_its_forms_or_be_settings_of_one_made_before():
    short = ("iid", {"dirichlet": {"alpha": 0.1}}, {"shards": None})
    for partition in (*short, {"name": "dirichlet", "alpha": 0.1}, {"alpha": 0.5}):
        assert faults_of_base(partition=partition) == [], partition


def test_settings_may_be_partial_and_null_where_the_workflow_allows_it():
    assert faults_of_base(client={"epochs": 5, "steps": None}, server=None, ensemble=None) == []


@pytest.mark.parametrize(
    "base",
    [
        {"clints": 10},
        {"clients": "ten"},
        {"clients": 0},
        {"model": "resnet9"},
        {"model": {"resnet20": {"depth": 20}}},
        {"model": None},
        {"partition": {"dirichlet": {"alpha": -1}}},
        {"partition": {"dirichlet": {"alpha": 1}, "iid": {}}},
        {"client": {"learning_rat": 0.1}},
        {"client": {"schedule": {"step": {"milestones": [1.5]}}}},
        {"global": "advanced"},
        {"numerics": {"device": "tpu"}},
        {"training": "pool"},
        {"evaluate": "everything"},
        {"rounds": 1.5},
    ],
    ids=str,
)
def test_wrong_key_value_or_type_is_refused_wherever_settings_stand(base):
    good = experiment()
    in_base, in_scale, in_method = good | {"base": base}, deepcopy(good), deepcopy(good)
    in_scale["scales"]["small"] = {"base": base}
    in_method["methods"] = {"mine": base}
    assert faults("experiment.schema.json", good) == []
    for content in (in_base, in_scale, in_method):
        assert faults("experiment.schema.json", content)
        config = {"targets": ["mine"], "experiments": {"mine": content}}
        assert faults("config.schema.json", config)


def test_experiment_needs_its_parts():
    for missing in ("title",):
        content = {key: value for key, value in experiment().items() if key != missing}
        assert faults("experiment.schema.json", content)


def test_config_needs_targets_and_refuses_unknown_keys():
    assert faults("config.schema.json", {"targets": ["quickstart"]}) == []
    assert faults("config.schema.json", {})
    assert faults("config.schema.json", {"targets": ["quickstart"], "target": "quickstart"})
