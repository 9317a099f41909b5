import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[3]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
CONDA = yaml.safe_load((REPOSITORY / "envs/fedstage.yaml").read_text())
CONTAINER = (REPOSITORY / "envs/Containerfile").read_text()
REQUIREMENTS = (REPOSITORY / "envs/requirements.txt").read_text()

DIRECT = PROJECT["project"]["dependencies"]
DEVELOPMENT = PROJECT["dependency-groups"]["dev"]
OPTIONAL = [
    entry for extra in PROJECT["project"]["optional-dependencies"].values() for entry in extra
]
CONSTRAINTS = PROJECT["tool"]["uv"]["constraint-dependencies"]

# In pieces, so that this file itself names none.
REGISTRY_HOSTS = [
    "pypi" + ".org",
    "python" + "hosted",
    "anaconda" + ".org",
    "download.py" + "torch",
]

# All of the repository but its history, what git ignores, and results.
SEARCHED = [".ci", "envs", "src", "tests", "workflow"]


def ignored(path):
    patterns = (REPOSITORY / ".gitignore").read_text().split()
    return any(fnmatch(part, pattern.rstrip("/")) for part in path.parts for pattern in patterns)


def published_files():
    roots = [REPOSITORY / folder for folder in SEARCHED]
    files = [*REPOSITORY.glob("*"), *(path for root in roots for path in root.rglob("*"))]
    return [path for path in files if path.is_file() and not ignored(path.relative_to(REPOSITORY))]


def required():
    """The packages of envs/requirements.txt, without markers, with the hashes of their files."""
    entries = re.split(
        r"^(?=\w)", re.sub(r"^#.*\n", "", REQUIREMENTS, flags=re.MULTILINE), flags=re.M
    )
    return {
        re.match(r"[^ ;]+", entry)[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry)
        for entry in entries
        if entry
    }


def test_requirements_are_versions_of_the_project_with_hashes():
    build = [*PROJECT["dependency-groups"]["build"], *PROJECT["build-system"]["requires"]]
    pinned = {constraint.partition(" ;")[0] for constraint in CONSTRAINTS}
    assert set(build) <= set(required()) <= pinned
    assert {Requirement(entry).name for entry in DIRECT} <= {
        Requirement(entry).name for entry in required()
    }
    assert all(required().values())
    # Nothing but versions and hashes: no host, no index, no file, no option.
    rest = re.sub(r"^#.*\n|--hash=sha256:[0-9a-f]{64}", "", REQUIREMENTS, flags=re.MULTILINE)
    assert not re.search(r"--|://|@", rest)


def test_conda_installs_the_requirements():
    (section,) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    assert section == ["--require-hashes", "-r requirements.txt"]


def test_container_installs_the_requirements():
    assert "COPY envs/requirements.txt ./\n" in CONTAINER
    installs = re.findall(r"^RUN pip install (.+)$", CONTAINER, re.MULTILINE)
    assert installs == ["--require-hashes -r requirements.txt", "--no-deps --no-build-isolation ."]


def test_the_recipe_has_the_ranges_of_the_project():
    recipe = yaml.safe_load((REPOSITORY / "envs/recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["project"]["version"]
    assert f">={recipe['context']['python_min']}" == PROJECT["project"]["requires-python"]
    names = {"snakemake-minimal": "snakemake", "pytorch": "torch"}
    _, *run = map(str.split, recipe["requirements"]["run"])
    found = {(names.get(name, name.removesuffix("-base")), range_) for name, range_ in run}
    wanted = (re.match(r"([\w-]+)(.+)", entry).groups() for entry in DIRECT)
    assert found == set(wanted)


def test_conda_supplies_python_and_pip_only():
    from_conda = [entry for entry in CONDA["dependencies"] if isinstance(entry, str)]
    assert [entry.split()[0] for entry in from_conda] == ["python", "pip"]


def test_pythons_of_the_environments_are_supported():
    supported = Requirement("python" + PROJECT["project"]["requires-python"]).specifier
    (conda,) = [
        re.fullmatch(r"python =([\d.]+)", str(entry))
        for entry in CONDA["dependencies"]
        if str(entry).startswith("python")
    ]
    base = r"^FROM python:([\d.]+)-slim@sha256:[0-9a-f]{64}$"
    container = re.search(base, CONTAINER, re.MULTILINE)
    assert conda[1] == container[1]
    assert supported.contains(conda[1])


@pytest.mark.parametrize("dependency", [*DIRECT, *OPTIONAL])
def test_the_range_of_a_dependency_has_a_lower_end_and_the_pinned_version(dependency):
    wanted = Requirement(dependency)
    assert any(one.operator == ">=" for one in wanted.specifier)
    pins = [one for one in map(Requirement, CONSTRAINTS) if one.name == wanted.name]
    assert pins
    for pin in pins:
        assert wanted.specifier.contains(str(pin.specifier).removeprefix("=="))


@pytest.mark.parametrize("dependency", DEVELOPMENT)
def test_what_tests_run_with_is_pinned(dependency):
    assert dependency in CONSTRAINTS


def test_every_constraint_is_one_version():
    specifiers = [str(Requirement(constraint).specifier) for constraint in CONSTRAINTS]
    assert all(re.fullmatch(r"==[\w.+]+", specifier) for specifier in specifiers)


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_no_file_names_the_host_of_a_package_registry(host):
    files = published_files()
    assert {"pyproject.toml", "fedstage.yaml", "Containerfile", "requirements.txt", "run"} <= {
        p.name for p in files
    }
    assert [str(path) for path in files if host.encode() in path.read_bytes()] == []
