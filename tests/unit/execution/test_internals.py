"""The internals of Snakemake that are replaced: that they are there, and what it changes."""

import inspect
import os
import signal
import threading
from threading import Event
from types import SimpleNamespace

import pytest
import snakemake.api  # before its modules, which import one another
from fedstage.execution.internals import (
    IndexBySuffix,
    lift_rate_limit,
    note_interrupts,
    own_locks,
    plan_faster,
    stop_at_bad_data,
    stop_in_a_thread,
    was_interrupted,
)
from snakemake.dag import DAG
from snakemake.io import IOFile, directory
from snakemake.output_index import OutputIndex
from snakemake.persistence.file import FilePersistence
from snakemake.scheduling.job_scheduler import JobRateLimiter, JobScheduler
from snakemake.settings.types import MaxJobsPerTimespan


def test_the_attributes_that_are_relied_upon_are_snakemakes():
    made, looks = JobScheduler.__init__.__code__, JobScheduler.schedule.__code__
    assert {"keepgoing", "failed", "job_rate_limiter", "exit_gracefully"} <= set(made.co_names)
    # It looks at both whenever it chooses jobs, so they may change during a run.
    assert {"keepgoing", "job_rate_limiter"} <= set(looks.co_names)
    assert "failed" in JobScheduler._handle_error.__code__.co_names
    assert list(inspect.signature(JobScheduler._handle_error).parameters) == [
        "self",
        "job",
        "postprocess_job",
    ]
    assert "_handle_error" in JobScheduler._error_jobs.__code__.co_names
    # At Ctrl-C it cancels; what has ended the run is kept at SIGTERM only.
    assert {"_executor", "cancel", "_user_kill", "KeyboardInterrupt"} <= set(looks.co_names)
    assert "_user_kill" in made.co_names
    assert "_user_kill" in JobScheduler.exit_gracefully.__code__.co_names


def test_the_locks_of_a_run_end_with_it_unless_its_jobs_run_elsewhere(tmp_path):
    store = FilePersistence(path=tmp_path)
    store._write_locks("input", ["a.csv"])
    here, elsewhere = (SimpleNamespace(persistence=store, local_exec=one) for one in (True, False))
    assert own_locks(here) == [tmp_path / "locks/0.input.lock"]
    assert own_locks(elsewhere) == []
    assert own_locks(SimpleNamespace(persistence=None, local_exec=True)) == []


def test_sigterm_still_waits_for_the_lock_in_the_main_thread():
    """Otherwise `stop_in_a_thread` can go."""
    stop = JobScheduler.exit_gracefully
    assert "_lock" in stop.__code__.co_names
    assert "signal" in JobScheduler.__init__.__code__.co_names
    scheduler = SimpleNamespace(_lock=threading.Lock())
    scheduler._lock.acquire()
    thread = threading.Thread(target=stop, args=(scheduler,), daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()


def test_each_look_still_brings_another_with_any_limit():
    """Otherwise `lift_rate_limit` can go."""
    assert "_schedule_reevalutation" in JobScheduler.schedule.__code__.co_names


@pytest.mark.parametrize(
    ("limit", "lifted"), [("100/1s", True), ("10/1s", False), ("100/2s", False)]
)
def test_only_snakemakes_own_limit_is_lifted(limit, lifted):
    limiter = JobRateLimiter(MaxJobsPerTimespan.parse_choice(limit))
    scheduler = SimpleNamespace(job_rate_limiter=limiter)
    lift_rate_limit(scheduler)
    assert (scheduler.job_rate_limiter is None) == lifted


def test_no_limit_is_left_as_it_is():
    scheduler = SimpleNamespace(job_rate_limiter=None)
    lift_rate_limit(scheduler)
    assert scheduler.job_rate_limiter is None


def test_sigterm_is_acted_upon_while_the_main_thread_holds_the_lock():
    lock, stopped = threading.Lock(), threading.Event()
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def stop():
        with lock:
            stopped.set()

    stop_in_a_thread(SimpleNamespace(exit_gracefully=stop))
    try:
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.wait(5)
    finally:
        signal.signal(signal.SIGTERM, before)


def job(rule):
    return SimpleNamespace(rule=SimpleNamespace(name=rule))


def going_on(failing, *, retried=False):
    """Whether a scheduler keeps going after a job has failed."""
    scheduler = SimpleNamespace(keepgoing=True, failed=[])

    def handle(job, postprocess_job=True):
        if not retried:
            scheduler.failed.append(job)

    scheduler._handle_error = handle
    stop_at_bad_data(scheduler)
    scheduler._handle_error(failing, postprocess_job=False)
    return scheduler.keepgoing


@pytest.mark.parametrize("rule", ["dataset", "partition", "core"])
def test_bad_data_stops_a_run(rule):
    assert not going_on(job(rule))
    assert not going_on(SimpleNamespace(jobs=[job("recipe"), job(rule)]))  # a group, on a cluster


def test_a_training_that_fails_stops_no_other_nor_does_data_that_is_tried_again():
    assert going_on(job("local_training"))
    assert going_on(job("initial_model"))  # a plugin's model is of one method
    assert going_on(job("dataset"), retried=True)


class Rule:
    """A rule of Snakemake's, as far as its index looks at it."""

    def __init__(self, *files):
        self.output = [IOFile(file, rule=None) for file in files]

    def products(self):
        return iter(self.output)

    def is_producer(self, path):
        return any(file.match(path) for file in self.output)


def test_the_index_finds_the_rules_that_snakemakes_own_does():
    rules = [
        Rule("a/{x}/round_0001/model", "a/{x}/round_0002/model"),
        Rule("a/{x,[^/]+-(?:1|2)}/round_0001/model", "a/{x,[^/]+-(?:1|2)}/log"),
        Rule("a/{x}/{y}"),
        Rule("{x}"),
        Rule("b"),
        Rule("b", "a/c-1/log"),
        Rule("a/{x}-{y}/log"),
        Rule("a/{x}/{x}/model"),
    ]
    own, index = OutputIndex(rules), IndexBySuffix(rules)
    paths = ["", "b", "a", "l", "a/c/c/model", "a/c-1/log", "a/c-1/round_0001/model"]
    for path in [*paths, "a/c-1/round_0002/model", "a/c-1/round_0003/model", "c/round_0001/model"]:
        assert index.match_producers(path) == own.match_producers(path)
    assert index.match_producers("a/c-1/log") >= {rules[1], rules[5], rules[6]}


def test_the_graph_calls_what_is_replaced_and_asks_its_index_for_nothing_else():
    assert {"OutputIndex", "output_index"} <= set(DAG.update_output_index.__code__.co_names)
    assert "check_directory_outputs" in DAG.init.__code__.co_names
    assert inspect.getsource(snakemake.dag).count("self.output_index.") == 1
    assert "match_producers" in DAG.file2jobs.__code__.co_names


@pytest.mark.parametrize(("file", "checked"), [("a", False), (directory("a"), True)])
def test_outputs_are_checked_if_there_are_directories_among_them(file, checked):
    calls = []

    class Graph:
        rules = (Rule("{x}", file),)

        def check_directory_outputs(self):
            calls.append(self)

    plan_faster(Graph)
    graph = Graph()
    graph.update_output_index()
    assert graph.output_index.match_producers("b") == set(Graph.rules)
    graph.check_directory_outputs()
    assert calls == [graph] * checked


@pytest.fixture
def handler():
    """Restore the handler of SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_noted_and_raised_as_before(handler):
    scheduler, pressed = SimpleNamespace(_user_kill=None), note_interrupts()
    assert not was_interrupted(scheduler, pressed)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert was_interrupted(scheduler, pressed)
    assert was_interrupted(SimpleNamespace(_user_kill="graceful"), Event())


def test_an_ignored_interrupt_stays_ignored(handler):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pressed = note_interrupts()
    signal.raise_signal(signal.SIGINT)
    assert not pressed.is_set()
