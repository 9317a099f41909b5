"""Fed-ET in one round (Cho et al. 2022, Eqs. 2 to 10), without representation layers.

each client k trains once, from the common initial model;  s(w, x) = sigma(f(x; w))
alpha_k(x) = Var(s(w_k, x)) / sum_l Var(s(w_l, x)),  over the entries of s         (3)
s(x) = sum_k alpha_k(x) s(w_k, x),   y_s(x) = argmax s(x)                          (2, 4)
s_div(x) = sum over k with argmax s(w_k, x) != y_s(x) of alpha_k(x) s(w_k, x)      (6 to 8)
student: steps on  mean_x [ CE(f(x; W), y_s(x)) + lambda KL(s_div(x), s(W, x)) ]   (10)
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedet(world, *, epochs, rate, diversity, steps, server_rate):
    """Return the student."""
    start = world.network()
    models = []
    for client in range(world.clients):
        images, labels = world.samples(client)
        batches = world.batches(1, client, len(labels), epochs)
        models.append(local_training(start, images, labels, batches, rate))
    pseudo, dissent = consensus(models, world.public)
    student = deepcopy(start)
    for batch in world.public_batches(steps):
        said, wanted = student(world.public[batch]), dissent[batch]
        # xlogy: 0 log 0 = 0, where all clients agree.
        divergence = torch.xlogy(wanted, wanted) - wanted * said.log_softmax(1)
        loss = cross_entropy(said, pseudo[batch]) + diversity * divergence.sum(1).mean()
        descend(student, loss, server_rate)
    return student


@torch.no_grad()
def consensus(models, images):
    """Return y_s [n] and s_div [n, C]."""
    s = torch.stack([model(images).softmax(1) for model in models])
    variance = ((s - s.mean(2, keepdim=True)) ** 2).mean(2)
    alpha = variance / variance.sum(0)
    pseudo = (alpha[:, :, None] * s).sum(0).argmax(1)
    disagree = s.argmax(2) != pseudo
    return pseudo, ((alpha * disagree)[:, :, None] * s).sum(0)


def local_training(start, images, labels, batches, rate):
    model = deepcopy(start)
    for batch in batches:
        descend(model, cross_entropy(model(images[batch]), labels[batch]), rate)
    return model


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
