"""Packages that settings need are installed by extras."""

import tomllib
from pathlib import Path

from fedstage.execution.requirements import EXTRAS, needed_packages
from fedstage.settings.base import Settings, subclasses
from fedstage.settings.models import Bert, Model
from fedstage.settings.one_shot_clients import Int8
from fedstage.settings.validation import validate

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


class Nested(Settings):
    """Settings that have others in them, also several."""

    model: Model
    architectures: tuple[Model, ...]
    quantisation: Int8 = Int8(name="int8")


def test_each_package_that_settings_need_has_an_extra_that_installs_it():
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    kinds = [kind for kind in subclasses(Settings) if kind.__module__.startswith("fedstage.")]
    assert {kind.package for kind in kinds} - {None} == EXTRAS.keys()
    for package, extra in EXTRAS.items():
        assert any(one.startswith(f"{package}>=") for one in extras[extra])


def test_settings_are_named_by_their_keys():
    given = {"model": "mlp", "architectures": ("mlp", "bert")}
    assert dict(needed_packages(validate(Nested, given, "here"))) == {
        "architectures = bert": Bert.package,
        "quantisation = int8": Int8.package,
    }
