"""Federated-learning research as a DAG of cached stages.

From Python: `run` makes a study of one's own model and data; `Samples` and `partition` prepare
data; `SNAKEFILE` is the workflow. They are imported when they are used, since the workflow imports
modules of this package without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedstage.execution.project import SNAKEFILE
    from fedstage.python.samples import Samples, partition
    from fedstage.python.study import run

__version__ = "0.1.0"
__all__ = ["SNAKEFILE", "Samples", "partition", "run"]

_MODULES = {
    "SNAKEFILE": "execution.project",
    "Samples": "python.samples",
    "partition": "python.samples",
    "run": "python.study",
}


def __getattr__(name: str) -> Any:
    """Import a public function when it is used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
