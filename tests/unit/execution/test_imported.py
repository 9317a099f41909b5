"""What a process has imported, compared with what its jobs were planned with."""

import sys
import time
from types import ModuleType

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


def check(now="planned"):
    imported.check_imports("planned", lambda: now)


def test_what_has_not_changed_since_the_plan_is_right_whatever_changes_later(load):
    path = load("a")
    imported.look_at_imports(time.time_ns())
    path.write_text("later = 1")
    check("other")


def test_an_edit_after_the_plan_is_refused_unless_the_fingerprint_is_the_same(load):
    load("a", planned=1)
    time.sleep(0.05)
    imported.look_at_imports(time.time_ns())
    check()
    with pytest.raises(FedstageError, match=r"a\.py: the source changed during the run"):
        check("other")


def test_an_edit_that_was_imported_and_reverted_is_refused(load):
    path = load("a", planned=1)
    time.sleep(0.05)
    imported.look_at_imports(time.time_ns())
    path.write_text("")
    with pytest.raises(FedstageError, match=r"a\.py: the source changed during the run"):
        check()


def test_without_a_plan_nothing_is_compared(load, monkeypatch):
    load("a", planned=1)
    monkeypatch.delenv(imported.PLANNED)
    imported.look_at_imports(0)
    check("other")
