import os

from fedstage.execution.terminal_log import faults
from fedstage.storage.files import save_json


def write(path, text, **more):
    save_json(path, {"error": text.splitlines()} | more)
    os.utime(path, (100, 100))
    return path


NOTHING = "no error message was recorded; see the output above"


def test_each_fault_is_told_once_with_rule_log_and_number_of_jobs(tmp_path):
    fault = "fedstage partition: clients = 9: at most 8"
    logs = [write(tmp_path / name, f"{fault}\n") for name in "ab"]
    one = faults([("partition", logs[0])], since=50)
    assert one == [f"partition failed: {logs[0]}", fault]
    told = faults([("partition", log) for log in logs], since=50)
    assert told == [f"partition failed: {logs[0]}", f"{fault} (2 jobs)"]


def test_faults_that_differ_in_what_distinguishes_jobs_are_one(tmp_path):
    texts = [
        f"fedstage local_training: client {client}, round {round_}: the loss is not finite at step "
        f"{client + round_}; lower client.learning_rate = 1e+30"
        for client in (3, 14) for round_ in (1, 20)
    ]  # fmt: skip
    texts += [
        f"fedstage logits: results/training/digits-seed{seed}-{digest}/round_{seed:04}/group_0/"
        f"participant_{seed}.safetensors: damaged"
        for seed, digest in [(3, "0f3a"), (11, "77be")]
    ]
    texts += [texts[0].replace("1e+30", "1e+20")]
    logs = [write(tmp_path / str(i), f"{text}\n") for i, text in enumerate(texts)]
    assert faults([("any", log) for log in logs], since=50) == [
        f"any failed: {logs[6]}", texts[6],
        f"any failed: {logs[4]}", f"{texts[4]} (2 jobs)",
        f"any failed: {logs[0]}", f"{texts[0]} (4 jobs)",
    ]  # fmt: skip


def test_the_traceback_stays_in_the_record(tmp_path):
    fault = "fedstage logits: a.py, line 3: NameError: name 'b' is not defined"
    log = write(tmp_path / "a.json", fault, traceback=["Traceback (most recent call last):"])
    assert faults([("logits", log)], since=50) == [f"logits failed: {log}", fault]


def test_a_job_without_a_fault_in_its_record_is_named(tmp_path):
    old = write(tmp_path / "old.json", "fedstage segment: of another run\n")
    other = tmp_path / "a.log"  # of a rule that is not ours
    other.write_text("Traceback (most recent call last):\n")
    for log, since in [(old, 200), (None, 200), (tmp_path / "none.json", 200), (other, 50)]:
        told = faults([("segment_1", log)], since=since)
        assert told == [f"segment_1 failed: {log or 'no log'}", NOTHING]


def test_of_many_faults_some_are_told_and_an_error_is_last(tmp_path):
    logs = [
        write(tmp_path / str(number), f"fedstage partition: alpha = {number}: too small\n")
        for number in range(8)
    ]
    first, *told = faults([("partition", log) for log in (None, *logs)], since=50)
    assert first == "4 more in the log of this run, in .snakemake/log"
    assert told == [
        line
        for number in reversed(range(5))
        for line in (
            f"partition failed: {logs[number]}",
            f"fedstage partition: alpha = {number}: too small",
        )
    ]
    last = faults([("a", None), ("partition", logs[0])], since=50)
    assert last[:2] == ["a failed: no log", NOTHING]
    assert last[3] == "fedstage partition: alpha = 0: too small"
