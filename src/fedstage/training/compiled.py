"""The loss of a model as compiled code. Imported only where `numerics.compile` asks for it.

Importing the compiler takes seconds, compiling a model tens of seconds, so code is kept twice: in
the process, where any model of the same kind, shapes and numerics uses it, and in a folder on disk,
from which later processes load it. Both give the bytes of freshly compiled code.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
import torch._dynamo.config
import torch._inductor.config

from fedstage.settings.numerics import Numerics
from fedstage.training.passes import Loss, ModelLoss, eager_loss

CACHE = "TORCHINDUCTOR_CACHE_DIR"
_CHOSEN = os.environ.get(CACHE)  # by the user, before anything here has set it

# A worker meets many batch sizes and models in its life, and each has code of its own. Behind the
# usual limit of 8 the compiler would give up, and which code is used would depend on the past.
torch._dynamo.config.recompile_limit = 100_000
torch._dynamo.config.accumulated_recompile_limit = 100_000
# No helper processes: they would outlive a worker that is killed.
torch._inductor.config.compile_threads = 1


def compiled_loss(loss: Loss, numerics: Numerics) -> ModelLoss:
    """Return `passes.eager_loss` as a function that is compiled when it first sees a shape.

    Code is for one number of threads; the compiler looks at it before it uses code again.
    """
    os.environ[CACHE] = str(cache_folder(numerics.threads))
    return _compiled(loss, numerics)


def cache_folder(threads: int) -> Path:
    """Return where compiled code is kept, apart by the number of threads that it is for."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(_CHOSEN or Path(home, "fedstage", "compiled")) / f"threads_{threads}"


@cache
def _compiled(loss: Loss, numerics: Numerics) -> ModelLoss:
    # One graph and no symbolic shapes: where that cannot be, it is an error and no slow path.
    compiled: Callable[..., torch.Tensor] = torch.compile(
        eager_loss(loss, numerics), fullgraph=True, dynamic=False
    )
    return compiled
