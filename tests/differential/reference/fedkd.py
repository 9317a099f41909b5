"""FedKD in one round (Gong et al. 2022; FENS, Section 2).

    each client i trains once, from the common initial model
    teacher(x)_c = sum_i l_{i,c} f(x; w_i)_c,    l_{i,c} = n_i^c / sum_j n_j^c
    student: Adam on  mean_{x, c} | f(x; w)_c - teacher(x)_c |,  over batches of public images

n_i^c is the number of samples of class c of client i. A class that nobody has counts 1/M.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy

CLASSES = 10
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


def fedkd(world, *, epochs, rate, steps, server_rate):
    """Return the student."""
    start = world.network()
    models, counts = [], []
    for client in range(world.clients):
        images, labels = world.samples(client)
        batches = world.batches(1, client, len(labels), epochs)
        models.append(local_training(start, images, labels, batches, rate))
        counts.append(torch.bincount(labels, minlength=CLASSES).float())
    held = sum(counts)
    shares = [torch.where(held > 0, own / held, 1 / world.clients) for own in counts]
    with torch.no_grad():
        teacher = sum(l * f(world.public) for l, f in zip(shares, models, strict=True))  # noqa: E741
    return distil(start, world.public, teacher, world.public_batches(steps), server_rate)


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    weights = list(model.parameters())
    for batch in batches:
        loss = cross_entropy(model(images[batch]), labels[batch])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient
    return model


def distil(start, images, teacher, batches, rate):
    """Kingma and Ba's Adam, with bias correction."""
    model = deepcopy(start)
    weights = list(model.parameters())
    m, v = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    for number, batch in enumerate(batches, start=1):
        loss = (model(images[batch]) - teacher[batch]).abs().mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for j, (weight, g) in enumerate(zip(weights, gradients, strict=True)):
                m[j] = BETA1 * m[j] + (1 - BETA1) * g
                v[j] = BETA2 * v[j] + (1 - BETA2) * g**2
                unbiased = m[j] / (1 - BETA1**number), v[j] / (1 - BETA2**number)
                weight -= rate * unbiased[0] / (unbiased[1].sqrt() + EPSILON)
    return model
