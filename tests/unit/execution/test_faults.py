import os

from fedstage.execution.faults import INTERRUPTED, count_failed, explain_interrupt, faults


def write(path, text):
    path.write_text(text)
    os.utime(path, (100, 100))
    return path


NOTHING = "it has no message of its own; what it has printed is above"


def test_each_fault_is_told_once_with_rule_and_log(tmp_path):
    fault = "fedstage partition: clients = 9: at most 8"
    logs = [write(tmp_path / name, f"{fault}\n") for name in "ab"]
    told = faults([("partition", log) for log in logs], since=50)
    assert told == [f"partition failed: {logs[0]}", fault]


def test_a_job_without_a_fault_in_its_log_is_named(tmp_path):
    old = write(tmp_path / "old.log", "fedstage segment: of another run\n")
    other = write(tmp_path / "a.log", "Traceback (most recent call last):\n")
    for log, since in [(old, 200), (None, 200), (tmp_path / "none.log", 200), (other, 50)]:
        told = faults([("segment_1", log)], since=since)
        assert told == [f"segment_1 failed: {log or 'no log'}", NOTHING]


def test_of_many_faults_some_are_told(tmp_path):
    logs = [
        write(tmp_path / str(number), f"fedstage partition: fault {number}\n")
        for number in range(8)
    ]
    *told, last = faults([("partition", log) for log in logs], since=50)
    assert len(told) == 10
    assert last == "and 3 more faults, in the log of this run in .snakemake/log"


def test_jobs_that_an_interrupt_has_ended_are_no_faults(tmp_path):
    fault = "fedstage partition: clients = 9: at most 8"
    log = write(tmp_path / "a.log", f"{fault}\n")
    failed = [
        ("segment_1", None),
        ("partition", log),
        ("tables", write(tmp_path / "b.log", "Traceback (most recent call last):\n")),
    ]
    told = [f"partition failed: {log}", fault, INTERRUPTED]
    assert faults(failed, since=50, interrupted=True) == told
    assert count_failed(failed, since=50) == 1
    assert faults([], since=50, interrupted=True) == [INTERRUPTED]
    assert faults([], since=50) == []


def test_only_an_interrupt_loses_its_traceback(capsys):
    for error, told in [
        (KeyboardInterrupt(), f"{INTERRUPTED}\n"),
        (KeyError("a"), "KeyError: 'a'\n"),
    ]:
        explain_interrupt(type(error), error, None)
        assert capsys.readouterr().err == told
