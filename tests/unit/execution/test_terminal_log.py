"""The logger plugin: that Snakemake takes it, and which messages it prints."""

import inspect
import logging

import pytest
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from fedstage.execution.notes import QUIET
from fedstage.execution.terminal_log import LogHandler

JOB = {
    "event": LogEvent.JOB_INFO, "rule_msg": "round 1 trains", "jobid": 3, "reason": "a, b, c",
    "rule_name": "tables", "output": ["results/tables/a.csv", "results/tables/a.md"],
}  # fmt: skip


@pytest.fixture
def printed(capfd, monkeypatch):
    """A function that returns what a handler prints of messages, with options of Snakemake."""
    monkeypatch.setenv(QUIET, "1")  # to be restored

    def of(messages, **options):
        handler = LogHandler(OutputSettings(**options), None)
        for text, extra in messages:
            record = logging.makeLogRecord({"msg": text, "levelno": logging.INFO} | extra)
            handler.handle(record)
        handler.close()
        done = capfd.readouterr()
        return done.out if options.get("stdout") else done.err

    return of


def test_snakemake_finds_the_plugin_and_its_classes_take_what_they_are_given():
    assert LoggerPluginRegistry().get_plugin("fedstage").log_handler is LogHandler
    handler = inspect.signature(ColorizingTextHandler).parameters
    assert {"nocolor", "stream", "formatter"} <= set(handler)
    assert list(inspect.signature(DefaultFormatter).parameters) == ["quiet", "show_failed_logs"]


STATS = ("job count", {"event": LogEvent.RUN_INFO, "stats": {"tables": 2, "total": 2}})
STARTED = ("Execute 1 jobs...", {"event": LogEvent.JOB_STARTED})
ONSET = ("16 models", {"explains_failures": True})
FINISHED = ("Finished", {"event": LogEvent.JOB_FINISHED, "job_id": 3})
ERROR = ("None", {"event": LogEvent.JOB_ERROR, "rule_name": "tables", "rule_msg": None, "jobid": 3}
    | {"input": [], "output": [], "log": [], "conda_env": None, "shellcmd": None, "aux": {}}
    | {"levelno": logging.ERROR})  # fmt: skip
RULE = ("RuleException: fedstage returned non-zero exit status 1.", {"levelno": logging.ERROR})


def test_a_run_prints_what_is_done(printed):
    messages = [("Building", {}), STATS, ONSET, STARTED, ("None", JOB), FINISHED, ("Select", {})]
    lines = printed(messages).splitlines()
    assert lines == ["16 models", "1 of 2 jobs done, in 0:00:00"]


def test_p_prints_a_run_as_snakemake_does(printed):
    text = printed([("Building", {}), STATS, ("None", JOB), FINISHED], printshellcmds=True)
    assert "Building" in text
    assert "Job 3: round 1 trains\nReason: a, b, c" in text
    assert text.endswith("Finished\n")


def test_what_no_job_follows_is_the_answer_of_another_command(printed):
    assert printed([("Building", {}), ("Unlocked", {})]) == "Building\nUnlocked\n"


def test_failures_are_left_to_the_end_where_the_snakefile_explains_them(printed):
    explained = printed([STATS, ONSET, ("None", JOB), RULE, ERROR])
    assert explained == "16 models\n0 of 2 jobs done, 1 failed, in 0:00:00\n"
    died = ("RuleException: Command 'set -euo' died with <Signals.SIGINT: 2>.", RULE[1])
    assert printed([STATS, ONSET, ("None", JOB), died, ERROR]) == explained
    alone = printed([STATS, ("None", JOB), RULE, ERROR])
    assert "RuleException" in alone
    assert "Error in rule tables" in alone
    shown = printed([STATS, ONSET, ("None", JOB), ERROR], show_failed_logs=True)
    assert "Error in rule tables" in shown


def test_a_warning_is_printed(printed):
    assert "careful" in printed([STATS, ONSET, ("careful", {"levelno": logging.WARNING})])


def test_the_answer_to_an_interrupt_is_printed(printed):
    text = "Terminating processes on user request, this might take some time."
    assert printed([STATS, ONSET, ("None", JOB), (text, {})]).splitlines()[1] == text


def test_a_dry_run_prints_counts_once_and_how_to_see_each_job(printed):
    messages = [("Building", {}), STATS, ("None", JOB), STATS, ("Reasons: a", {})]
    assert printed(messages, dryrun=True, stdout=True).splitlines() == [
        "job count",
        "fedstage: snakemake -n -p lists every job, with its reason",
    ]


def test_a_dry_run_without_jobs_has_none_to_show(printed):
    assert printed([("Nothing to be done", {})], dryrun=True) == "Nothing to be done\n"


@pytest.mark.parametrize(
    "options",
    [{"printshellcmds": True}, {"verbose": True}, {"debug_dag": True}],
)
def test_a_dry_run_prints_jobs_with_reasons_where_an_option_asks_for_more(printed, options):
    text = printed([STATS, ("None", JOB), STATS], dryrun=True, **options)
    assert "Reason: a, b, c" in text
    assert text.count("job count") == 2
    assert "lists every job" not in text


def test_a_dry_run_that_is_quieter_has_no_hint(printed):
    assert "lists" not in printed([("None", JOB)], dryrun=True, quiet={Quietness.RULES})


def test_an_error_without_a_message_has_none(printed):
    assert "message" not in printed([STATS, ("None", JOB), ERROR])
