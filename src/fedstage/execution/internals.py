"""The internals of Snakemake that are replaced or read, and why.

What an option can do is in `workflow/profiles/default`, and what a plugin can do in `terminal_log`.
`tests/unit/execution/test_internals.py` fails when Snakemake changes what is relied upon here.
"""

import signal
from _thread import start_new_thread
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

#: Rules that read users' data, and come before any training.
_OF_DATA = {"dataset", "partition", "core"}


def lift_rate_limit(scheduler: Any) -> None:
    """Drop Snakemake's default limit of 100 jobs per second, but not a limit set by the user.

    With any limit, each look at the waiting jobs causes another one at the end of its timespan:
    after n jobs there are n looks per second. No option of Snakemake turns the limit off.
    """
    limit = scheduler.job_rate_limiter
    if limit and (limit.max_jobs, limit.timespan) == (100, 1):
        scheduler.job_rate_limiter = None


def stop_in_a_thread(scheduler: Any) -> None:
    """Handle SIGTERM in a separate thread.

    Snakemake's handler waits for the scheduler's lock. It runs in the main thread, which may hold
    the lock at this moment, and would then wait for ever.
    """
    stop = scheduler.exit_gracefully
    signal.signal(signal.SIGTERM, lambda *_: start_new_thread(stop, ()))


def stop_at_bad_data(scheduler: Any) -> None:
    """Start no more jobs once data cannot be used, although other failures do not stop a run.

    Otherwise jobs that do not depend on the bad data could train for days before anyone notices.
    Snakemake can only keep going after faults of all rules, or of none.
    """
    handle = scheduler._handle_error

    def handled(job: Any, *arguments: Any, **named: Any) -> None:
        handle(job, *arguments, **named)
        rules = {member.rule.name for member in getattr(job, "jobs", [job])}
        if job in scheduler.failed and rules & _OF_DATA:
            scheduler.keepgoing = False

    scheduler._handle_error = handled


class IndexBySuffix:
    """The rules that make a file, looked up by the end of its name.

    Snakemake's own index tries all outputs with the same beginning. Thousands of outputs of
    segments begin with ``results/training/``.
    """

    def __init__(self, rules: Collection[Any]) -> None:
        self._ending: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        for rule in rules:
            for product in rule.products():
                self._ending[str(product.constant_suffix())].append((rule, product))
        self._lengths = {len(suffix) for suffix in self._ending}

    def match_producers(self, targetfile: str) -> set[Any]:
        """Return the rules that make a file."""
        ends = {targetfile[max(len(targetfile) - length, 0) :] for length in self._lengths}
        found = (pair for end in ends for pair in self._ending.get(end, ()))
        return {rule for rule, product in found if product.match(targetfile)}


def plan_faster(graph: Any) -> None:
    """Replace what takes most of the time with the thousands of outputs that segments have.

    Besides the index, that is a check that compares all outputs as paths. It looks for a file below
    another one, which must then be a directory.

    Parameters
    ----------
    graph : class
        Snakemake's class of graphs.
    """
    check = graph.check_directory_outputs

    def index(dag: Any) -> None:
        dag.output_index = IndexBySuffix(dag.rules)

    def checked(dag: Any) -> None:
        if any(file.is_directory for rule in dag.rules for file in rule.output):
            check(dag)

    graph.update_output_index = index
    graph.check_directory_outputs = checked


def own_locks(workflow: Any) -> list[Path]:
    """Return the locks of this run, if all its jobs end with it; jobs on other machines go on."""
    held = getattr(workflow.persistence, "_lockfile", {})  # other stores of metadata have none
    return [Path(path) for path in held.values()] if workflow.local_exec else []


def note_interrupts() -> Event:
    """Return an event that Ctrl-C sets from now on; SIGTERM is noted by the scheduler itself.

    Where SIGINT is ignored, as in background jobs of a shell, or where Snakemake is called in
    another thread, nothing is changed.
    """
    pressed = Event()

    def handle(number: int, frame: FrameType | None) -> None:
        pressed.set()
        signal.default_int_handler(number, frame)

    handled = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if handled and current_thread() is main_thread():
        signal.signal(signal.SIGINT, handle)
    return pressed


def was_interrupted(scheduler: Any, pressed: Event) -> bool:
    """Whether the user has ended the run, by Ctrl-C or SIGTERM."""
    return pressed.is_set() or scheduler._user_kill is not None
