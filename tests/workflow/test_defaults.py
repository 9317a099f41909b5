"""Snakemake's options: those of the default profile, without naming it."""

import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

REPOSITORY = Path(__file__).parents[2]
TELLS = f"""
import json

include: "{REPOSITORY}/Snakefile"


onstart:
    told = {{
        "triggers": sorted(str(one) for one in workflow.dag_settings.rerun_triggers),
        "incomplete": workflow.dag_settings.force_incomplete,
        "checksums": workflow.persistence.max_checksum_file_size,
        "keep_going": workflow.scheduler.keepgoing,
        "subsample": workflow.scheduler.subsample,
    }}
    print("told:", json.dumps(told), file=sys.stderr)
"""
GOOD = {
    "triggers": ["mtime", "params"],
    "incomplete": True,
    "checksums": 100_000_000,
    "keep_going": True,
    "subsample": 500,
}
SNAKEMAKES = {
    "triggers": ["code", "input", "mtime", "params", "software-env"],
    "incomplete": False,
    "checksums": 1_000_000,
    "keep_going": False,
    "subsample": None,
}
OTHER_PROFILE = "rerun-triggers: [mtime]\nscheduler-subsample: 7\n"


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ((), {}),
        (("--workflow-profile", str(REPOSITORY / "workflow/profiles/default")), {}),
        (("--workflow-profile", "none"), SNAKEMAKES),
        (("--max-checksum-file-size", "1MB"), {"checksums": 1_000_000}),
        (("--workflow-profile", "other"), {"triggers": ["mtime"], "subsample": 7}),
    ],
)
def test_options_are_those_of_the_default_profile_unless_others_are_named(
    copy, tmp_path, options, changes
):
    snakefile = tmp_path / "Snakefile"
    snakefile.write_text(TELLS)
    (tmp_path / "workflow").symlink_to(REPOSITORY / "workflow")
    (tmp_path / "profiles/other").mkdir(parents=True)
    (tmp_path / "profiles/other/config.yaml").write_text(OTHER_PROFILE)
    (table,) = copy.files("results/tables/tiny/default.csv")
    (copy.path / table).unlink()
    run = copy.make(str(table), "--snakefile", str(snakefile), *options)
    assert json.loads(re.search(r"^told: (.*)$", run.output, re.MULTILINE)[1]) == GOOD | changes
