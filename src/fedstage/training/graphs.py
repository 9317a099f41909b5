"""A training step as a CUDA graph: recorded once, then launched by the host in one call.

A small model's step is hundreds of kernels, which a GPU runs faster than a host can launch them. A
graph works on fixed tensors: the model's and the optimiser's, which the step changes in place, and
copies of its arguments.
"""

from collections import Counter
from collections.abc import Callable

import torch

#: A training step: from samples [rows, b] and step sizes [2] to the loss, a tensor of one number.
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

#: Steps before the recorded one: libraries set themselves up in their first calls.
WARM_UP = 3


def recorded(step: Step) -> Step:
    """Return an equivalent step that runs as a graph, with one graph per batch size b.

    The first `WARM_UP` batches of a size run `step` itself: an epoch's last batch comes once per
    epoch. No step runs twice, nothing has to be undone, and a graph gives the same bytes as its
    step.
    """
    batches, graphs = Counter[int](), dict[int, Step]()

    def take(samples: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        size = samples.shape[1]
        batches[size] += 1
        if batches[size] <= WARM_UP:
            return step(samples, sizes)
        if size not in graphs:
            graphs[size] = _graph(step, samples, sizes)
        return graphs[size](samples, sizes)

    return take


def _graph(step: Step, *first: torch.Tensor) -> Step:
    """Return a step as a graph for arguments of the shapes of `first`."""
    arguments = [each.clone(memory_format=torch.contiguous_format) for each in first]
    replay = record(lambda: step(*arguments))

    def take(*given: torch.Tensor) -> torch.Tensor:
        for argument, value in zip(arguments, given, strict=True):
            argument.copy_(value)
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
