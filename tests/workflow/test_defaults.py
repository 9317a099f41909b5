"""Snakemake's options: those of the default profile, without naming it."""

import json
import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
TELLS = f"""
import json

include: "{REPOSITORY}/Snakefile"


onsuccess:
    told = {{
        "triggers": sorted(str(one) for one in workflow.dag_settings.rerun_triggers),
        "incomplete": workflow.dag_settings.force_incomplete,
        "checksums": workflow.persistence.max_checksum_file_size,
        "keep_going": workflow.scheduler.keepgoing,
        "subsample": workflow.scheduler.subsample,
        "scheduler": workflow.scheduling_settings.scheduler,
        "plugins": [type(one).__module__ for one in workflow.logger_manager.plugin_handlers],
    }}
    print("told:", json.dumps(told), file=sys.stderr)
"""
GOOD = {
    "triggers": ["mtime"],
    "incomplete": True,
    "checksums": 100_000_000,
    "keep_going": True,
    "subsample": 500,
    "scheduler": "greedy",
    "plugins": ["fedstage.execution.terminal_log"],
}
SNAKEMAKES = {
    "triggers": ["code", "input", "mtime", "params", "software-env"],
    "incomplete": False,
    "checksums": 1_000_000,
    "keep_going": False,
    "subsample": None,
    "scheduler": "ilp",
    "plugins": [],
}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), GOOD),
        (("--workflow-profile", str(REPOSITORY / "workflow/profiles/default")), GOOD),
        (("--workflow-profile", "other"), SNAKEMAKES | {"triggers": ["mtime"], "subsample": 7}),
        (
            ("--max-checksum-file-size", "1MB", "--scheduler", "ilp"),
            GOOD | {"checksums": 1_000_000, "scheduler": "ilp"},
        ),
    ],
)
def test_options_are_those_of_the_default_profile_unless_others_are_named(
    copy, tmp_path, monkeypatch, options, told
):
    monkeypatch.chdir(REPOSITORY)  # where users call snakemake
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(TELLS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (tmp_path / "profiles/other").mkdir(parents=True)
    (tmp_path / "profiles/other/config.yaml").write_text(
        "rerun-triggers: [mtime]\nscheduler-subsample: 7\n"
    )
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile), *options)
    assert json.loads(re.search(r"told: (\{.*?\})", run.output)[1]) == told


def test_the_profile_of_the_root_is_a_link_to_the_default_one():
    assert os.readlink(REPOSITORY / "default") == "workflow/profiles/default/config.yaml"
