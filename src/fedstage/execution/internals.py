"""The three internals of Snakemake that are replaced, all of its scheduler, and why.

What an option can do stands in `workflow/profiles/default`, what a plugin can do in `terminal_log`.
`tests/unit/execution/test_internals.py` fails when Snakemake changes what is relied upon here.
"""

import signal
from _thread import start_new_thread
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Any

#: Rules that read users' data, and come before any training.
_OF_DATA = {"dataset", "partition", "core"}


def lift_rate_limit(scheduler: Any) -> None:
    """Drop the limit of 100 jobs a second that Snakemake has by default, not one of a user.

    With any limit, each look at the waiting jobs brings about another one when its timespan is
    over: after n jobs these are n a second. No option means that there is no limit.
    """
    limit = scheduler.job_rate_limiter
    if limit and (limit.max_jobs, limit.timespan) == (100, 1):
        scheduler.job_rate_limiter = None


def stop_in_a_thread(scheduler: Any) -> None:
    """Let a thread of its own act on SIGTERM.

    Snakemake's handler waits for the scheduler's lock. It runs in the main thread, which may hold
    the lock at this moment, and would then wait for ever.
    """
    stop = scheduler.exit_gracefully
    signal.signal(signal.SIGTERM, lambda *_: start_new_thread(stop, ()))


def stop_at_bad_data(scheduler: Any) -> None:
    """Start no more jobs once data cannot be used, although others are kept going.

    What depends on no bad data could train for days before anyone notices. Snakemake keeps
    going after the fault of any rule, or of none.
    """
    handle = scheduler._handle_error

    def handled(job: Any, *arguments: Any, **named: Any) -> None:
        handle(job, *arguments, **named)
        rules = {member.rule.name for member in getattr(job, "jobs", [job])}
        if job in scheduler.failed and rules & _OF_DATA:
            scheduler.keepgoing = False

    scheduler._handle_error = handled


def note_interrupts() -> Event:
    """Return an event that Ctrl-C sets from now on; of SIGTERM the scheduler itself keeps a note.

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
