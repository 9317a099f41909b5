"""The check of licences that CI makes."""

from importlib.metadata import PathDistribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / ".ci/licences.py"


@pytest.fixture(scope="module")
def licences():
    spec = spec_from_file_location("licences", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(folder, *recipes, name="one"):
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1\n")
    with (folder / "METADATA").open("a") as file:
        file.writelines(f"{recipe}\n" for recipe in recipes)
    return PathDistribution(folder)


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("License-Expression: MIT AND PSF-2.0", "MIT AND PSF-2.0"),
        ("Classifier: License :: OSI Approved :: BSD License", "BSD-3-Clause"),
        ("License: Apache 2.0", "Apache-2.0"),
        ("License: GPL-3.0", "GPL-3.0"),
        ("Classifier: Topic :: Software Development", ""),
    ],
)
def test_a_licence_is_read_from_where_a_package_says_it(licences, tmp_path, recipe, expected):
    assert licences.licence_of(package(tmp_path, recipe)) == expected


def test_what_a_package_does_not_say_is_stated(licences, tmp_path):
    assert licences.licence_of(package(tmp_path, name="conda-inject")) == "MIT"


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("GPL-3.0-only AND (MIT OR ISC)", False),
        ("A licence of our own", False),
        ("", False),
    ],
)
def test_only_listed_licences_are_allowed(licences, expression, allowed):
    assert licences.is_allowed(expression) == allowed


def test_a_package_that_is_not_allowed_is_named(licences, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        licences, "distributions", lambda: [package(tmp_path, "License: AGPL-3.0", name="bad")]
    )
    assert licences.main() == 1
    assert "bad: licence 'AGPL-3.0'" in capsys.readouterr().err
