import os

from fedstage.execution.faults import INTERRUPTED, explain_interrupt, faults


def write(path, text):
    path.write_text(text)
    os.utime(path, (100, 100))
    return path


def test_each_fault_is_told_once(tmp_path):
    fault = "fedstage partition: clients = 9: at most 8"
    logs = [write(tmp_path / name, f"{fault}\n") for name in "ab"]
    assert faults([("partition", log) for log in logs], since=50) == [fault]


def test_a_job_that_was_ended_from_outside_is_named(tmp_path):
    old = write(tmp_path / "old.log", "fedstage segment: of another run\n")
    told = "segment_1: failed without a message of its own, see above"
    assert faults([("segment_1", old)], since=200) == [told]
    assert faults([("segment_1", None)], since=200) == [told]
    assert faults([("segment_1", tmp_path / "none.log")], since=200) == [told]


def test_a_log_that_is_no_fault_is_named(tmp_path):
    log = write(tmp_path / "a.log", "Traceback (most recent call last):\n")
    assert faults([("tables", log)], since=50) == [f"tables: failed, see above and {log}"]


def test_of_many_faults_some_are_told(tmp_path):
    logs = [
        write(tmp_path / str(number), f"fedstage partition: fault {number}\n")
        for number in range(8)
    ]
    *told, last = faults([("partition", log) for log in logs], since=50)
    assert len(told) == 5
    assert last == "and 3 more faults, see above"


def test_jobs_that_an_interrupt_has_ended_are_no_faults(tmp_path):
    fault = "fedstage partition: clients = 9: at most 8"
    failed = [
        ("segment_1", None),
        ("partition", write(tmp_path / "a.log", f"{fault}\n")),
        ("tables", write(tmp_path / "b.log", "Traceback (most recent call last):\n")),
    ]
    assert faults(failed, since=50, interrupted=True) == [fault, INTERRUPTED]
    assert faults([], since=50, interrupted=True) == [INTERRUPTED]
    assert faults([], since=50) == []


def test_only_an_interrupt_loses_its_traceback(capsys):
    for error, told in [
        (KeyboardInterrupt(), f"{INTERRUPTED}\n"),
        (KeyError("a"), "KeyError: 'a'\n"),
    ]:
        explain_interrupt(type(error), error, None)
        assert capsys.readouterr().err == told
