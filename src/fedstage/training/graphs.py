"""A training step as a CUDA graph: recorded once, then started by the host as one piece of work.

The step of a small model is hundreds of kernels, which a GPU finishes faster than a host can start
them one by one. A graph is for fixed tensors: the model's and the optimiser's, which the step
changes in place, and those that it is told. Nothing here is about what a step computes.
"""

from collections.abc import Callable

import torch

#: A training step of the samples [rows, b] by the sizes [2]: returns the loss, a tensor of one.
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Steps before the one that is recorded: libraries set themselves up in their first calls.
WARM_UP = 3


def recorded(step: Step, batch_size: int) -> Step:
    """Return a step that does the same, full batches (b = `batch_size`) by a graph.

    The first of them, and batches of another size, take the step as it is: no step is taken twice,
    and nothing has to be put back. A graph gives the bytes of the step that it was made of.
    """
    full, told, replay = 0, [], None

    def take(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        nonlocal full, told, replay
        if samples.shape[1] != batch_size:
            return step(samples, sizes)
        full += 1
        if full <= WARM_UP:
            return step(samples, sizes)
        if replay is None:
            told = [samples.clone(memory_format=torch.contiguous_format), sizes.clone()]
            replay = record(lambda: step(*told))
        told[0].copy_(samples)
        told[1].copy_(sizes)
        return replay()

    return take


def record(step: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """Record a step on the current stream, without taking it; return what takes it.

    The stream must not be the default one (see `fedstage.training.streams`), and its own for each
    training beside others: the workspace that a library got on a stream is part of the graph.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        loss = step()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return replay
