"""The loss of a model as compiled code, imported only where `numerics.compile` is true.

Importing the compiler takes seconds, compiling a model tens of seconds. So code is cached twice: in
the process, for all models of the same kind, shapes and numerics, and in a folder on disk, for
later processes. Both give the same bytes as freshly compiled code.
"""

import os
from functools import cache
from pathlib import Path

import torch
import torch._dynamo.config
import torch._inductor.config

from fedstage.plan.syntax import cache_folder
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import Loss, ModelLoss, eager_loss

CACHE = "TORCHINDUCTOR_CACHE_DIR"
_USERS_CACHE = os.environ.get(CACHE)  # read before `compiled_loss` sets the variable

# A worker meets many batch sizes and models, and each needs code of its own. Beyond the default
# limit of 8 the compiler would give up, and which code runs would depend on the worker's past.
torch._dynamo.config.recompile_limit = 100_000
torch._dynamo.config.accumulated_recompile_limit = 100_000
# No helper processes: they would outlive a worker that is killed.
torch._inductor.config.compile_threads = 1


def compiled_loss(loss: Loss, numerics: Numerics) -> ModelLoss:
    """Return `passes.eager_loss` as a function that is compiled at its first call with a shape."""
    folder = Path(_USERS_CACHE or cache_folder() / "compiled")
    os.environ[CACHE] = str(folder / f"threads_{numerics.threads}")  # code is specific to it
    return _compiled(loss, numerics)


@cache
def _compiled(loss: Loss, numerics: Numerics) -> ModelLoss:
    # One graph and no symbolic shapes: where that is impossible, fail instead of running slowly.
    return torch.compile(eager_loss(loss, numerics), fullgraph=True, dynamic=False)
