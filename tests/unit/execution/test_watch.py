"""`fedstage watch`: what a log of snakemake says, and what is made of it."""

import socket
from datetime import datetime, timedelta

import pytest

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.execution.runs import note_run
from fedstage.execution.snakemake_log import latest_log, read_progress
from fedstage.execution.time_left import seconds_left, seconds_of
from fedstage.execution.watch import describe, look
from fedstage.stages.aggregation import PARTICIPANTS_SCHEMA
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_rows

LOG = """Building DAG of jobs...
Provided cores: 2
Job stats:
job                 count
----------------  -------
local_training          4
aggregation             2
all                     1
total                   7

Select jobs to execute...
Execute 2 jobs...
[Sun Nov 22 14:06:00 2026]
Job 3: round 0001: participant 0 trains (line-1)
Reason: Missing output files: a, b
[Sun Nov 22 14:06:00 2026]
Job 4: round 0001: participant 1 trains (line-1)
[Sun Nov 22 14:06:10 2026]
Finished jobid: 3 (Rule: local_training)
1 of 7 steps (14%) done
[Sun Nov 22 14:06:12 2026]
localjob 9: round 0001: participant 2 trains (line-1)
[Sun Nov 22 14:06:12 2026]
Finished jobid: 4 (Rule: local_training)
2 of 7 steps (29%) done
"""
FAILED = """[Sun Nov 22 14:06:20 2026]
Error in rule local_training:
    jobid: 9
    output: c
Exiting because a job execution failed. Look below for error messages
"""
START = datetime(2026, 11, 22, 14, 6)
NOW = START + timedelta(seconds=20)


def progress(text=LOG):
    return read_progress(text.splitlines())


def test_a_log_says_what_is_planned_runs_and_is_done():
    found = progress()
    assert found.cores == 2
    assert found.started == START
    assert found.planned == {"local_training": 4, "aggregation": 2, "all": 1}
    assert found.finished == {"local_training": [10.0, 12.0]}
    assert found.left == {"local_training": 2, "aggregation": 2, "all": 1}
    begun, message = found.running[9]
    assert message == "round 0001: participant 2 trains (line-1)"
    assert begun == START + timedelta(seconds=12)
    assert not found.ended


def test_a_failed_job_runs_no_more():
    found = progress(LOG + FAILED)
    assert found.failed == ["local_training"]
    assert found.running == {}
    assert found.ended


def test_seconds_are_those_of_this_run_or_of_records(tmp_path):
    record = {
        "stage": "aggregation", "made": "2026-11-22", "options": {}, "inputs": {}, "outputs": {},
        "versions": {}, "compute_s": 3.0, "startup_s": 0.1, "peak_memory_mb": 9,
    }  # fmt: skip
    save_json(tmp_path / "results/logs/aggregation/line-1/a.record.json", record)
    seconds = seconds_of(progress(), tmp_path, {})
    assert seconds == {"local_training": 11.0, "aggregation": 3.0, "all": 0.0}
    # Of 2 x 11 s and 2 x 3 s the running job has done 8 s; 30 s of work took 20 s so far.
    assert seconds_left(progress(), NOW, seconds) == (pytest.approx(20 / 1.5), 0)
    head = describe(progress(), NOW, seconds).splitlines()[0]
    assert head.endswith("2 of 7 jobs, about 13 s left")


def test_a_log_without_jobs_says_why():
    found = progress("")
    assert "planning" in describe(found, NOW, {})
    found.ended = True
    assert describe(found, NOW, {}).startswith("ended: snakemake's log has no jobs, as of a run")


def test_jobs_of_no_known_length_are_counted(tmp_path):
    seconds = seconds_of(progress(), tmp_path, {})
    assert seconds["aggregation"] is None
    text = describe(progress(), NOW, seconds)
    assert "about 9 s left, 2 jobs of no known length" in text
    assert "     8 s  round 0001: participant 2 trains (line-1)" in text
    assert "       2  local_training, 11.0 s each" in text


def participants(folder, round_, losses):
    table = folder / f"results/training/line-1/round_{round_:04d}/group_0/participants.parquet"
    table.parent.mkdir(parents=True)
    row = dict.fromkeys(PARTICIPANTS_SCHEMA.names)
    rows = [row | {"loss": loss, "samples": 10 * (i + 1)} for i, loss in enumerate(losses)]
    save_rows(table, rows, PARTICIPANTS_SCHEMA)


@pytest.fixture
def running(tmp_path):
    """A working folder in which snakemake runs."""
    for name in ("log", "locks"):
        (tmp_path / ".snakemake" / name).mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.input.lock").touch()
    (tmp_path / ".snakemake/log/2026-11-21T0.snakemake.log").write_text("of yesterday")
    (tmp_path / ".snakemake/log/2026-11-22T140600.snakemake.log").write_text(LOG)
    return tmp_path


def test_the_last_log_counts(running):
    assert latest_log(running).name == "2026-11-22T140600.snakemake.log"


def test_losses_are_means_over_samples_of_the_last_round(running, capsys):
    participants(running, 1, [9.0, 9.0])
    participants(running, 2, [1.0, 4.0])
    log = latest_log(running)
    log.write_text(LOG.replace("2026]", "2020]"))  # before the tables
    found, text = look(running, {})
    assert not found.ended
    assert text.splitlines()[-1] == "  line-1: round 2, training loss 3.0000"
    assert main(["watch", str(running), "--once"]) == 0
    assert "training loss 3.0000" in capsys.readouterr().out


def test_a_run_whose_lock_is_gone_has_ended(running, capsys):
    (running / ".snakemake/locks/0.input.lock").unlink()
    assert main(["watch", str(running)]) == 0  # without --once
    out = capsys.readouterr().out
    assert "2 of 7 jobs, ended" in out
    assert "running" not in out


def test_a_run_that_was_killed_has_ended_although_its_lock_is_there(running, capsys):
    log = latest_log(running)
    note_run(log).write_text(f"{socket.gethostname()} 1 0")
    assert main(["watch", str(running)]) == 0  # without --once
    assert "2 of 7 jobs, ended" in capsys.readouterr().out


def test_a_folder_without_a_run_is_one_line(tmp_path, capsys):
    with pytest.raises(FedstageError, match="no run of snakemake has a log here"):
        latest_log(tmp_path)
    assert main(["watch", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"fedstage watch: {tmp_path}: no run of snakemake")
