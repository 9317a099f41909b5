"""Results: tables, figures, claims and reports, all from two tidy files of an experiment.

For users, in Python: `scores`, `costs`, `model`, `compare` and `best`, which read the files of a
finished target. They are imported when they are used, because the workflow itself imports modules
of this room without pandas and torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.python.models import model
    from fedstage.results.differences import best, compare
    from fedstage.results.targets import costs, scores

__all__ = ["best", "compare", "costs", "model", "scores"]

_MODULES = {
    "best": "results.differences",
    "compare": "results.differences",
    "costs": "results.targets",
    "model": "python.models",
    "scores": "results.targets",
}


def __getattr__(name: str) -> Any:
    """Import a public function when it is used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"fedstage.{_MODULES[name]}"), name)
