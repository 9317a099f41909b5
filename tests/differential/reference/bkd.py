"""Buffered distillation, and what it is compared with (Edge Bias in Federated Learning).

phase 0: train the core F on its labelled samples C_0: CE
for each round
    phase 1: each edge starts from F and trains on its own samples to f_k: CE
    phase 2: F_0 <- F;   for each batch of C_0 (melting: F_0 <- F at the start of each epoch)
        F <- F - eta grad [ CE + L_tau(A, F) + beta L_tau(F_0, F) ]
        EMA:  F_bar <- d F_bar + (1 - d) F,  F_bar = F before the phase, and F <- F_bar after it

L_tau(p, q) = tau^2 KL( softmax(p / tau), softmax(q / tau) ), and A is the mean logit of the edges.
KD has beta = 0, in all rounds or in the first ones.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def bkd(
    world, *, rounds, epochs, rate, core_epochs, core_rate,
    steps, epoch, server_rate, tau, beta, first_buffered, melting, decay,
):  # fmt: skip
    """Return the core after the last round; an epoch of its distillation has `epoch` steps."""
    images, labels = world.core()
    core = world.network()
    for batch in world.core_batches(core_epochs):
        descend(core, cross_entropy(core(images[batch]), labels[batch]), core_rate)
    for t in range(1, rounds + 1):
        edges = []
        for client in world.participants(t):
            edge, (x, y) = deepcopy(core), world.samples(client)
            for batch in world.batches(t, client, len(y), epochs):
                descend(edge, cross_entropy(edge(x[batch]), y[batch]), rate)
            edges.append(edge)
        with torch.no_grad():
            teacher = sum(edge(images) for edge in edges) / len(edges)
        before, mean = deepcopy(core), deepcopy(core)
        for number, batch in enumerate(world.core_batches(steps, t)):
            if melting and number % epoch == 0:
                before = deepcopy(core)
            said = core(images[batch])
            loss = cross_entropy(said, labels[batch]) + softened(teacher[batch], said, tau)
            if t >= first_buffered:
                with torch.no_grad():
                    remembered = before(images[batch])
                loss = loss + beta * softened(remembered, said, tau)
            descend(core, loss, server_rate)
            average(mean, core, decay)
        if decay is not None:
            core = mean
    return core


def softened(teacher, student, tau):
    wanted = (teacher / tau).softmax(1)
    return tau**2 * (wanted * (wanted.log() - (student / tau).log_softmax(1))).sum(1).mean()


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


@torch.no_grad()
def average(mean, model, decay):
    for own, weight in zip(mean.parameters(), model.parameters(), strict=True):
        if decay is not None:
            own.copy_(decay * own + (1 - decay) * weight)
