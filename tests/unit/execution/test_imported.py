"""What a process has imported, compared with what its jobs were planned with."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from fedstage.errors import FedstageError
from fedstage.execution import imported


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A function that imports a new module of the package, and returns its file."""
    monkeypatch.setattr(imported, "_SEEN", set(sys.modules))
    monkeypatch.setattr(imported, "_CHANGED", {})

    def imports(name, planned=None):
        module = ModuleType(f"fedstage.{name}")
        path = tmp_path / f"{name}.py"
        path.write_text("")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setenv(imported.PLANNED, str(planned or imported.last_change([path])))
        return path

    return imports


@pytest.fixture
def check(tmp_path, monkeypatch):
    """A function that compares the source of a job, whose one module is now as it is told."""
    file = tmp_path / "source.json"
    file.write_text('{"module": "planned"}')
    sources = [SimpleNamespace(file=str(file))]

    def checks(now="planned"):
        monkeypatch.setattr(imported, "digest_now", lambda name: now)
        assert imported.planned_source(sources, time.time_ns()) == {"module": "planned"}

    return checks


def test_what_has_not_changed_since_the_plan_is_right_whatever_changes_later(load, check):
    path = load("a")
    imported.look_at_imports(time.time_ns())
    path.write_text("later = 1")
    check("other")


def test_an_edit_after_the_plan_is_refused_unless_the_source_is_the_same(load, check):
    load("a", planned=1)
    time.sleep(0.05)
    check()
    with pytest.raises(FedstageError, match=r"a\.py: the source changed during the run"):
        check("other")


def test_an_edit_that_was_imported_and_reverted_is_refused(load, check):
    path = load("a", planned=1)
    time.sleep(0.05)
    imported.look_at_imports(time.time_ns())
    path.write_text("")
    with pytest.raises(FedstageError, match=r"a\.py: the source changed during the run"):
        check()


def test_without_a_plan_nothing_is_compared(load, check, monkeypatch):
    load("a", planned=1)
    monkeypatch.delenv(imported.PLANNED)
    check("other")
