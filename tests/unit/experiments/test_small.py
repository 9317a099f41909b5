"""The small configurations that the documentation names, one a family of methods."""

import re
from pathlib import Path

import pytest

from fedstage.execution.requirements import EXTRAS, needed_packages
from fedstage.experiments.catalogue import load_catalogue
from fedstage.plan.runs import split_target
from fedstage.storage.yaml_files import load_yaml

ROOT = Path(__file__).parents[3]
DOCUMENTED = re.findall(
    r"^\| ([^|]+) \| `uv run snakemake --cores all (\S+/smoke)` \|",
    (ROOT / "workflow/docs/experiments.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_every_family_has_one():
    experiments = {split_target(target)[0] for _, target in DOCUMENTED}
    families = [path.parent for path in (ROOT / "workflow/papers").glob("*/experiments")]
    assert len(families) == 5
    for family in families:
        assert experiments & {path.stem for path in family.glob("experiments/*.yaml")}, family.name
    assert experiments & {path.stem for path in (ROOT / "workflow/experiments").glob("*.yaml")}


@pytest.mark.parametrize(("family", "target"), DOCUMENTED)
def test_it_reads_nothing_that_is_not_installed(family, target):
    known = load_catalogue(
        load_yaml(ROOT / "config.yaml") | {"targets": [target]}, ROOT / "workflow", ""
    )
    runs = known.runs[split_target(target)]
    assert runs
    for run in runs:
        assert run.recipe.data.name == "digits"
        public = getattr(run.recipe, "public", None)
        assert public is None or public.name in ("held_out", "core", "generated")
        for _, package in needed_packages(run.recipe):
            assert f"`uv sync --extra {EXTRAS[package]}`" in family
