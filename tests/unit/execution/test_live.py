"""A run in one line: what is read from messages and from what jobs print."""

import logging
import os
import pty
import time
from datetime import datetime, timedelta

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from fedstage.execution.live import Live, fitting
from fedstage.execution.progress import Progress, describe_shortly, ending, readable, take_in
from fedstage.storage.files import save_json

NOW = datetime(2026, 1, 1)


def told(**about):
    return logging.makeLogRecord(about)


def started(job, rule="aggregation", output=()):
    return told(
        event=LogEvent.JOB_INFO,
        jobid=job,
        rule_msg=f"{rule}: round {job} (a-recipe)",
        rule_name=rule,
        output=list(output),
    )


def test_the_progress_follows_the_messages():
    progress, jobs = Progress(), {}
    stats = told(event=LogEvent.RUN_INFO, stats={"aggregation": 3, "tables": 1, "total": 4})
    done = told(event=LogEvent.JOB_FINISHED, job_id=1)
    error = told(event=LogEvent.JOB_ERROR, jobid=2, rule_name="aggregation")
    cores = told(event=LogEvent.RESOURCES_INFO, cores=2)
    messages = [cores, stats, started(1, output=["results/tables/a/b.md"]), started(2)]
    for record in messages:
        assert take_in(progress, jobs, record, NOW) == []
    later = NOW + timedelta(seconds=90)
    assert take_in(progress, jobs, done, later) == ["results/tables/a/b.md"]
    line = describe_shortly(progress, later, {"aggregation": 90, "tables": 10}, "round 1: loss 2")
    assert line == "1 of 4 jobs; about 50 s left; aggregation: round 2; round 1: loss 2"
    take_in(progress, jobs, error, later)
    assert ending(progress, later) == "1 of 4 jobs done, 1 failed, in 1 min 30 s"
    unknown = describe_shortly(progress, later, {"aggregation": 90, "tables": None}, "")
    assert unknown == "1 of 4 jobs; 1 failed; at least 3 min 00 s left"
    assert describe_shortly(Progress(), NOW, {}, "") == "planning"


def test_parts_of_a_line_without_room_are_left_out():
    line = "[#...] 1 of 4 jobs; about 50 s left; round 3, group 0: training loss 0.5; tables: a"
    assert fitting(line, len(line)) == line
    assert fitting(line, len(line) - 1) == line.removesuffix("; tables: a")
    without = "[#...] 1 of 4 jobs; about 50 s left; tables: a"
    assert fitting(line, len(without)) == without
    assert fitting(line, 20) == "[#...] 1 of 4 jobs"
    assert fitting(line, 8) == "[#...] 1"


def test_one_format_of_a_result_is_named():
    for outputs, named in [
        (["a.csv", "a.md", "a.html"], ["a.md"]),
        (["a.png", "a.svg", "b.png"], ["a.png", "b.png"]),
        (["a.html"], ["a.html"]),
        (["a.csv", "a.parquet"], ["a.csv"]),
        (["a.safetensors", "b.json"], []),
    ]:
        assert readable(outputs) == named


@pytest.fixture
def printing(tmp_path, monkeypatch):
    """A function that returns what is printed, on a terminal or not, by jobs that print lines."""
    monkeypatch.chdir(tmp_path)

    def of(lines, records=(), *, terminal):
        main, side = pty.openpty() if terminal else os.pipe()
        before = os.dup(2)
        os.dup2(side, 2)
        live = Live()
        for record in records:
            live.follow(record)
        for line in lines:
            os.system(f"printf '%s\\n' '{line}' >&2")
        deadline = time.monotonic() + 30
        while any("round" in line for line in lines) and not live._notes:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        live.show("the end")
        live.close()
        os.dup2(before, 2)
        os.close(side)
        text = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(main)
        os.close(before)
        return text.decode().replace("\r\n", "\n")

    return of


PLANNED = told(event=LogEvent.RUN_INFO, stats={"tables": 2, "total": 2})


def test_what_jobs_print_stays_above_the_line(printing):
    lines = ["Traceback", "fedstage aggregation: round 3, group 0: training loss 0.5, 2 part (x)"]
    text = printing([*lines, "fedstage a: warning: careful"], [PLANNED], terminal=True)
    assert "\x1b[KTraceback\n" in text
    assert "\x1b[Kfedstage a: warning: careful\n" in text
    line = "] 0 of 2 jobs; last training loss 0.5"
    assert any(part.endswith(line) for part in text.split("\r\x1b[K"))
    assert text.endswith("\r\x1b[K0 of 2 jobs done, in 0 s\n")


def test_without_a_terminal_no_line_is_redrawn(printing):
    text = printing(["fedstage a: round 3: accuracy 4 %", "b"], [PLANNED], terminal=False)
    assert sorted(text.splitlines()) == ["0 of 2 jobs done, in 0 s", "b", "the end"]


def test_a_fault_is_printed_unless_a_record_has_it(printing, tmp_path):
    save_json(tmp_path / "a.json", {"error": ["fedstage a: broken"]})
    error = told(event=LogEvent.JOB_ERROR, jobid=2, rule_name="a", log=["a.json"])
    lines = ["fedstage a: broken", "fedstage a: the disk is full"]
    text = printing(lines, [PLANNED, error], terminal=False)
    assert text == "the end\nfedstage a: the disk is full\n0 of 2 jobs done, 1 failed, in 0 s\n"
