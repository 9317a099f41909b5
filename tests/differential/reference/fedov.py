"""FedOV (Diao, Li and He 2023): clients learn an unknown class C, and vote by what they know.

    each client i minimises, from the common initial model on, by steps on batches
        CE(f(x), y) + CE(f(x'), C) + CE(f(x''), C) + a CE(f(x) - 10000 e_y, C) + b CE(f_ab, C)
        x'    a destroyed image of each x
        x''   x', and then s times  x'' + r sign(grad CE(f(x''), C)); no such term if s = 0
        f_ab  t f(x_a) + (1 - t) f(x_b), of pairs (a, b) of the batch with y_a != y_b
    prediction   argmax_{c < C} sum_i softmax(f_i(x))_c, the softmax over all C + 1 classes

What is drawn is given: x', t and the partners b of each step.
"""

import torch
from torch.nn.functional import cross_entropy


def fedov(world, draws, *, epochs, rate, steps, step, second, mixed):
    """Return the clients' models, and what they say together about the test images."""
    models = []
    for client in range(world.clients):
        model = world.network()
        images, labels = world.samples(client)
        batches = world.batches(1, client, len(labels), epochs)
        for number, batch in enumerate(batches):
            drawn = draws(client, number, images[batch])
            loss = loss_of(model, images[batch], labels[batch], *drawn, steps, step, second, mixed)
            descend(model, loss, rate)
        models.append(model)
    return models, vote(models, world.test_images)


def loss_of(model, x, y, destroyed, t, partners, steps, step, second, mixed):
    unknown = model(x).shape[1] - 1

    def of_unknown(logits):
        return cross_entropy(logits, torch.full([len(logits)], unknown))

    disguised = destroyed
    for _ in range(steps):
        disguised = disguised.detach().requires_grad_()
        (uphill,) = torch.autograd.grad(of_unknown(model(disguised)), disguised)
        disguised = (disguised + step * uphill.sign()).detach()

    said = model(x)
    loss = cross_entropy(said, y) + of_unknown(model(destroyed))
    if steps:
        loss = loss + of_unknown(model(disguised))
    masked = torch.stack([row - 10000 * (torch.arange(unknown + 1) == int(label)).float()
                          for row, label in zip(said, y, strict=True)])  # fmt: skip
    loss = loss + second * of_unknown(masked)
    pairs = [(a, int(b)) for a, b in enumerate(partners) if y[a] != y[b]]
    if pairs:
        between = torch.stack([t * said[a] + (1 - t) * said[b] for a, b in pairs])
        loss = loss + mixed * of_unknown(between)
    return loss


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient


@torch.no_grad()
def vote(models, images):
    return sum(model(images).softmax(1)[:, :-1] for model in models)
