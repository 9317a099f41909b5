"""Every function of the package that runs in a job is covered by the fingerprint of that job.

Jobs that differ in what they compute are made, and then run once more here, by the commands in
their logs, with a profile function that notes what is called while the stage runs.
"""

import shlex
import sys
import threading
from pathlib import Path

import pytest

from fedstage.execution.cli import stage_parser
from fedstage.plan.definitions import is_check
from fedstage.plan.source import definitions, reachable, reached_by
from fedstage.plan.syntax import modules
from fedstage.stages import find_stage
from fedstage.storage.provenance import SUFFIX
from fedstage.storage.records import load_record
from fedstage.storage.why import settings_behind

pytestmark = pytest.mark.workflow

#: Methods whose rounds call most of what rounds can call.
METHODS = [
    "fedsdd",
    "scaffold",
    "fedgkd",
    "asked_averages",
    "fedet",
    "scarlet",
    "fedgems",
    "fedgkt",
]
METHODS += ["server_of_everything", "bound_clients", "fedgo"]
#: A file of each module of the package.
FILES = {str(path): name for name, path in modules().items()}
#: While these run, settings are read, which the plan has read and checked before.
READING = ("validate", "validate_restricted", "validate_json")


class Calls:
    """The functions of the package that are called, by module and qualified name."""

    def __init__(self):
        self.called, self.reading = set(), 0

    def __call__(self, frame, event, _):
        module = FILES.get(frame.f_code.co_filename)
        if module is None:
            return
        name = frame.f_code.co_name
        reads = module == "fedstage.settings.validation" and name in READING
        reads = reads or name == "<module>"  # an import, which only defines
        if event == "call":
            self.reading += reads
            if not self.reading:
                self.called.add((module, frame.f_code.co_qualname))
        elif event == "return":
            self.reading -= reads


def traced(command):
    """Run the stage of a command; return what it calls."""
    name, *arguments = shlex.split(command)[1:]
    stage, calls = find_stage(name), Calls()
    options = vars(stage_parser(name, stage).parse_args(arguments))
    options = {key: value for key, value in options.items() if key not in ("log", "fingerprint")}
    sys.setprofile(calls)
    threading.setprofile(calls)
    try:
        stage(**options)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls.called


def uncovered(called, settings, stage, options):
    """Return the functions that no fingerprint of a job counts."""
    reached = (stage, frozenset(), (), frozenset())
    if settings is not None:
        reached = reached_by(settings, stage, options.get("evaluated"), options.get("members"))
    whole, counted = reachable(*reached[:3]), definitions(*reached[:3], classes=reached[3])
    parts = {tuple(name.split(":")) for name in counted}
    for module, function in called:
        first, _, rest = function.partition(".")
        names = {first, f"{first}.{rest.partition('.')[0]}"}
        anonymous = first.startswith("<")  # in a definition that counts, or in none
        if module in whole or anonymous or is_check(module, names):
            continue
        if not any((module, name) in parts for name in names):
            yield f"{module}:{function}"


def test_what_runs_in_a_job_is_in_its_fingerprint(project, monkeypatch):
    project.configure(methods=METHODS, execution={"granularity": "segment"})
    project.make()
    monkeypatch.chdir(project.path)
    stages, missing = set(), {}
    for record in sorted(Path("results/logs").rglob(f"*{SUFFIX}")):
        job = load_record(record)
        if job["stage"] in ("line", "tables", "figures"):
            continue
        command = Path(str(record).removesuffix(SUFFIX) + ".log").read_text().splitlines()[0]
        settings = settings_behind(Path(), job)
        called = traced(command)
        assert called, command
        for name in uncovered(called, settings, job["stage"], job["options"]):
            missing.setdefault(name, set()).add(job["stage"])
        stages.add(job["stage"])
    assert {"segment", "evaluation", "dataset", "partition", "client_odds"} <= stages
    assert missing == {}
