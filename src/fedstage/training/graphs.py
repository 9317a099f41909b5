"""A training step as a CUDA graph: recorded once, then launched by the host in one call.

A small model's step is hundreds of kernels, which a GPU runs faster than a host can launch them. A
graph works on fixed tensors: the model's and the optimiser's, which the step changes in place, and
copies of its arguments.
"""

from collections.abc import Callable

import torch

#: A training step: from samples [rows, b] and step sizes [2] to the loss, a tensor of one number.
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Steps before the recorded one: libraries set themselves up in their first calls.
WARM_UP = 3


def recorded(step: Step, batch_size: int) -> Step:
    """Return an equivalent step that runs full batches (b = `batch_size`) as a graph.

    The first `WARM_UP` of them and batches of another size run `step` itself. No step runs twice,
    nothing has to be undone, and a graph gives the same bytes as its step.
    """
    full, arguments, replay = 0, [], None

    def take(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        nonlocal full, arguments, replay
        is_full = samples.shape[1] == batch_size
        full += is_full
        if not is_full or full <= WARM_UP:
            return step(samples, sizes)
        if replay is None:
            arguments = [samples.clone(memory_format=torch.contiguous_format), sizes.clone()]
            replay = record(lambda: step(*arguments))
        arguments[0].copy_(samples)
        arguments[1].copy_(sizes)
        return replay()

    return take


def record(step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Record a step on the current stream without running it, and return a function that runs it.

    The stream must not be the default one (see `fedstage.training.streams`), and no other training
    may share it: the workspace that a library allocated on a stream is part of the graph.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        loss = step()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return replay
