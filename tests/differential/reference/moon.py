"""MOON (Li, He, Song 2021, Algorithm 1).

    for each round t
        each participant i minimises, from w^t on, by steps on batches
            CE + mu mean_x -log( near / (near + far) )
            near = exp(cos(z, z_glob) / T),  far = exp(cos(z, z_prev) / T)
        with the representations z of x by w_i, z_glob by w^t, z_prev by the w_i of its last round
        w^{t+1} <- sum_i (n_i / n) w_i

A client without a last round minimises CE. The gradient flows through z only.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def moon(world, *, rounds, epochs, rate, mu, temperature):
    """Return the model after the last round; networks have `represent` and `classify`."""
    model, last = world.network(), {}
    for t in range(1, rounds + 1):
        trained, sizes = [], []
        for client in world.participants(t):
            own, before = deepcopy(model), last.get(client)
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                z = own.represent(images[batch])
                loss = cross_entropy(own.classify(z), labels[batch])
                if before is not None:
                    with torch.no_grad():
                        others = model.represent(images[batch]), before.represent(images[batch])
                    loss = loss + mu * contrast(z, *others, temperature)
                descend(own, loss, rate)
            last[client] = own
            trained.append(own)
            sizes.append(len(labels))
        model = average(trained, [size / sum(sizes) for size in sizes])
    return model


def contrast(z, z_glob, z_prev, temperature):
    near = (cosine(z, z_glob) / temperature).exp()
    far = (cosine(z, z_prev) / temperature).exp()
    return -(near / (near + far)).log().mean()


def cosine(a, b):
    return (a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


def average(models, shares):
    mean = deepcopy(models[0])
    with torch.no_grad():
        own = [list(model.parameters()) for model in models]
        for weight, *values in zip(mean.parameters(), *own, strict=True):
            weight.copy_(sum(share * value for share, value in zip(shares, values, strict=True)))
    return mean
