"""FedBE (Chen and Chao 2021, Algorithm 1).

    for each round t
        each participant i trains from w to w_i;   w_bar = sum_i p_i w_i,  p_i = n_i / n
        draw M models
            Gaussian   w ~ Normal(w_bar, diag sum_i p_i (w_i - w_bar)^2)
            Dirichlet  w = sum_i gamma_i w_i,  gamma ~ Dir(1, ..., 1)
        p(x) = mean of sigma(f(x; w)) over w_bar, all w_i and the M models
        w <- w_bar, and steps on KL(p(x), sigma(f(x; w))); w becomes the mean of its values after
        every c-th step (SWA), with the rate falling linearly from step to step of each c

Which models another program drew is no part of the method: `said_by_drawn` may return what they say
about the public images in a round, as logits [M, n, classes].
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedbe(
    world, *, rounds, epochs, rate, distribution, draws, steps, server_rate, cycle, final,
    said_by_drawn=None,
):  # fmt: skip
    """Return the student of the last round."""
    model = world.network()
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained.append(local_training(model, images, labels, batches, rate))
            sizes.append(len(labels))
        shares = [size / sum(sizes) for size in sizes]
        model = combined(trained, shares)
        if said_by_drawn is None:
            draw = gaussian if distribution == "gaussian" else dirichlet
            drawn = said_by([draw(trained, shares, world.torch) for _ in range(draws)], world)
        else:
            drawn = said_by_drawn(t)
        members = torch.cat([said_by([model, *trained], world), drawn])
        teacher = members.softmax(2).mean(0)
        model = distil(model, world, teacher, steps, server_rate, cycle, final)
    return model


def gaussian(models, shares, generator):
    drawn = deepcopy(models[0])
    with torch.no_grad():
        for weight, *values in zip(*map(parameters, [drawn, *models]), strict=True):
            mean = sum(p * value for p, value in zip(shares, values, strict=True))
            variance = sum(p * (value - mean) ** 2 for p, value in zip(shares, values, strict=True))
            weight.copy_(mean + variance.sqrt() * torch.randn(mean.shape, generator=generator))
    return drawn


def dirichlet(models, shares, generator):
    """Exponential numbers, divided by their sum, have the distribution Dir(1, ..., 1)."""
    numbers = torch.empty(len(models)).exponential_(generator=generator)
    return combined(models, (numbers / numbers.sum()).tolist())


def distil(start, world, teacher, steps, rate, cycle, final):
    model = deepcopy(start)
    total, taken = [torch.zeros_like(weight) for weight in parameters(model)], 0
    for number, batch in enumerate(world.public_batches(steps)):
        wanted, said = teacher[batch], model(world.public[batch]).log_softmax(1)
        loss = (wanted * (wanted.log() - said)).sum(1).mean()
        along = (number % cycle + 1) / cycle
        descend(model, loss, rate * ((1 - along) + along * final))
        if (number + 1) % cycle == 0:
            total = [s + w.detach() for s, w in zip(total, parameters(model), strict=True)]
            taken += 1
    with torch.no_grad():
        for weight, summed in zip(parameters(model), total, strict=True):
            weight.copy_(summed / taken)
    return model


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    for batch in batches:
        descend(model, cross_entropy(model(images[batch]), labels[batch]), rate)
    return model


def descend(model, loss, rate):
    gradients = torch.autograd.grad(loss, parameters(model))
    with torch.no_grad():
        for weight, gradient in zip(parameters(model), gradients, strict=True):
            weight -= rate * gradient


def combined(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        for weight, *values in zip(*map(parameters, [mean, *models]), strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean


def parameters(model):
    return list(model.parameters())


@torch.no_grad()
def said_by(models, world):
    return torch.stack([model(world.public) for model in models])
