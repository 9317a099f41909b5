"""Results: metrics and scores, tables, figures, claims, and results at hand.

For users, in Python: `load`, `model`, `samples`, `by_class`, `by_client` and `compare`, which read
the files of a finished run. They are imported when they are used, because the workflow itself
imports modules of this room without pandas and torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.results.at_hand.differences import compare
    from fedstage.results.at_hand.models import model, samples
    from fedstage.results.at_hand.runs import load
    from fedstage.results.at_hand.scores import by_class, by_client

__all__ = ["by_class", "by_client", "compare", "load", "model", "samples"]

_MODULES = {
    "by_class": "scores",
    "by_client": "scores",
    "compare": "differences",
    "load": "runs",
    "model": "models",
    "samples": "models",
}


def __getattr__(name: str) -> Any:
    """Import a public function when it is used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.at_hand.{_MODULES[name]}"), name)
