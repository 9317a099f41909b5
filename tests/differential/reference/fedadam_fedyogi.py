"""FedAdam and FedYogi (Reddi et al. 2021, Algorithm 2).

m = 0,  v = tau^2
for each round t
    each participant i trains from x to x_i, and  Delta_i = x_i - x
    Delta <- (1 / |S|) sum_i Delta_i
    m <- beta_1 m + (1 - beta_1) Delta
    v <- v - (1 - beta_2) Delta^2 sign(v - Delta^2)        (FedYogi)
    v <- beta_2 v + (1 - beta_2) Delta^2                   (FedAdam)
    x <- x + eta m / (sqrt(v) + tau)
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def adaptive(world, *, rounds, epochs, rate, rule, server_rate, beta1, beta2, tau):
    """Return the model after the last round; `rule` is adam or yogi."""
    model = world.network()
    m = [torch.zeros_like(weight) for weight in model.parameters()]
    v = [torch.full_like(weight, tau**2) for weight in model.parameters()]
    for t in range(1, rounds + 1):
        ends = []
        for client in world.participants(t):
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            ends.append(local_training(model, images, labels, batches, rate))
        with torch.no_grad():
            for j, x in enumerate(model.parameters()):
                change = sum(end[j] - x for end in ends) / len(ends)
                m[j] = beta1 * m[j] + (1 - beta1) * change
                square = change**2
                if rule == "yogi":
                    v[j] = v[j] - (1 - beta2) * square * torch.sign(v[j] - square)
                else:
                    v[j] = beta2 * v[j] + (1 - beta2) * square
                x += server_rate * m[j] / (v[j].sqrt() + tau)
    return model


def local_training(start, images, labels, batches, rate):
    """Return the weights after the steps."""
    model = deepcopy(start)
    weights = list(model.parameters())
    for batch in batches:
        loss = cross_entropy(model(images[batch]), labels[batch])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient
    return [weight.detach() for weight in weights]
