"""What of Snakemake is replaced: that it is there, and that it gives the same."""

import inspect

import pytest
import snakemake.api  # before its modules, which import one another
from snakemake.dag import DAG
from snakemake.io import IOFile, directory
from snakemake.output_index import OutputIndex
from snakemake.scheduling.job_scheduler import JobRateLimiter, JobScheduler

from fedstage.execution.executor import IndexBySuffix, look_less_often, plan_faster


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


def test_the_scheduler_looks_again_after_a_limit_of_jobs_in_a_time():
    source = inspect.getsource(JobScheduler.schedule)
    assert "self._schedule_reevalutation(self.job_rate_limiter.timespan)" in source
    assert callable(JobRateLimiter.get_free_jobs)


@pytest.mark.parametrize(
    ("free", "running", "delay", "again"),
    [(1, {1}, 1, False), (0, {1}, 1, True), (1, set(), 1, True), (1, {1}, 10, True)],
)
def test_it_looks_again_where_a_limit_was_reached_or_no_job_runs(free, running, delay, again):
    class Limit:
        timespan = 1

        def get_free_jobs(self):
            return free

    class Scheduler:
        job_rate_limiter = Limit()
        looks = []

        def _schedule_reevalutation(self, delay):
            self.looks.append(delay)

    look_less_often(Scheduler)
    one = Scheduler()
    one.running = running
    one._schedule_reevalutation(delay)
    assert one.looks == [delay] * again
