"""The logger plugin: that Snakemake takes it, and which messages it prints."""

import inspect
import logging

import pytest
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from fedstage.execution.terminal_log import LogHandler

JOB = {
    "event": LogEvent.JOB_INFO, "rule_msg": "round 1 trains", "jobid": 3, "reason": "a, b, c",
}  # fmt: skip


@pytest.fixture
def printed(capsys):
    """A function that returns what a handler prints of messages, with options of Snakemake."""

    def of(messages, **options):
        handler = LogHandler(OutputSettings(**options), None)
        for text, extra in messages:
            record = logging.makeLogRecord({"msg": text, "levelno": logging.INFO} | extra)
            handler.handle(record)
        handler.close()
        done = capsys.readouterr()
        return done.out if options.get("stdout") else done.err

    return of


def test_snakemake_finds_the_plugin_and_its_classes_take_what_they_are_given():
    assert LoggerPluginRegistry().get_plugin("fedstage").log_handler is LogHandler
    handler = inspect.signature(ColorizingTextHandler).parameters
    assert {"nocolor", "stream", "formatter"} <= set(handler)
    assert list(inspect.signature(DefaultFormatter).parameters) == ["quiet", "show_failed_logs"]


def test_a_run_prints_jobs_without_reasons_nor_how_many_start(printed):
    messages = [("Execute 1 jobs...", {"event": LogEvent.JOB_STARTED}), ("None", JOB)]
    text = printed(messages)
    assert "Job 3: round 1 trains" in text
    assert "Reason" not in text
    assert "Execute" not in text
    assert "lists every job" not in text


STATS = ("job count", {"event": LogEvent.RUN_INFO})


def test_a_dry_run_prints_counts_once_and_how_to_see_each_job(printed):
    text = printed([STATS, ("None", JOB), STATS, ("the end", {})], dryrun=True, stdout=True)
    assert text.splitlines() == [
        "job count",
        "the end",
        "fedstage: snakemake -n -p lists every job, with its reason",
    ]


def test_a_dry_run_without_jobs_has_none_to_show(printed):
    assert printed([("the end", {})], dryrun=True) == "the end\n"


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
    empty = {"input": [], "output": [], "log": [], "conda_env": None, "shellcmd": None, "aux": {}}
    error = {"event": LogEvent.JOB_ERROR, "rule_name": "dataset", "rule_msg": None, "jobid": 1}
    assert "message" not in printed([("None", error | empty)])
