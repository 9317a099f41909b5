import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from fedstage.settings.schemas import as_text, main, schemas

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "workflow/schemas"
EXPERIMENTS = sorted((REPOSITORY / "workflow").glob("**/experiments/*.yaml"))
CLAIMS = sorted((REPOSITORY / "workflow/papers").glob("*/claims.yaml"))


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: 1e-3 is a number."""


EditorLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read(path):
    return yaml.load(path.read_text(), EditorLoader)


def faults(name, content):
    return [
        f"{error.json_path}: {error.message}"
        for error in Draft7Validator(schemas()[name]).iter_errors(content)
    ]


def experiment(**base):
    return {"title": "An experiment", "base": base, "scales": {"default": None}}


def faults_of_base(**base):
    return faults("experiment.schema.json", experiment(**base))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_file_is_what_the_settings_give(name):
    assert (FOLDER / name).read_text() == as_text(schemas()[name]), (
        "the settings have changed: python -m fedstage.settings.schemas workflow/schemas"
    )


@pytest.mark.parametrize("name", sorted(schemas()))
def test_schema_is_a_valid_schema_whose_references_exist(name):
    schema = schemas()[name]
    Draft7Validator.check_schema(schema)
    used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
    assert used == set(schema["$defs"])


def test_no_other_file_is_among_the_schemas():
    assert {path.name for path in FOLDER.iterdir()} == set(schemas())


def test_command_writes_the_files(tmp_path):
    main([str(tmp_path / "new")])
    written = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert written == {name: as_text(schema) for name, schema in schemas().items()}


def test_config_yaml_is_valid():
    assert faults("config.schema.json", read(REPOSITORY / "config.yaml")) == []


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_experiment_file_is_valid(path):
    assert faults("experiment.schema.json", read(path)) == []


@pytest.mark.parametrize("path", CLAIMS, ids=lambda path: path.stem)
def test_file_of_claims_is_valid(path):
    assert faults("claims.schema.json", read(path)) == []


def test_library_of_methods_is_valid_as_methods_of_an_experiment():
    content = experiment() | {"methods": read(REPOSITORY / "workflow/methods.yaml")}
    assert faults("experiment.schema.json", content) == []


@pytest.mark.parametrize(
    "partition",
    [
        "iid",
        {"dirichlet": {"alpha": 0.1}},
        {"shards": None},
        {"name": "dirichlet", "alpha": 0.1},
        {"alpha": 0.5},
    ],
    ids=["name", "name and settings", "name alone", "in full", "settings of a choice made before"],
)
def test_choice_may_stand_in_any_of_its_forms(partition):
    assert faults_of_base(partition=partition) == []


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


@pytest.mark.parametrize("missing", ["title", "scales"])
def test_experiment_needs_its_parts(missing):
    content = {key: value for key, value in experiment().items() if key != missing}
    assert faults("experiment.schema.json", content)


def test_config_needs_targets_and_refuses_unknown_keys():
    assert faults("config.schema.json", {"targets": ["quickstart"]}) == []
    assert faults("config.schema.json", {})
    assert faults("config.schema.json", {"targets": ["quickstart"], "target": "quickstart"})
