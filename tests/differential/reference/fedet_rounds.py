"""Fed-ET in rounds (Cho et al. 2022, Algorithm 1): a large model W, small ones M_1 to M_U.

    for each round t
        each participant k trains from M_{M(k)} to w_k, with the head h_k
        the head of W <- 1/m sum_k h_k
        alpha_k(x) = Var(s(w_k, x)) / sum_l Var(s(w_l, x)),  s(w, x) = sigma(f(x; w))      (3)
        s(x) = sum_k alpha_k(x) s(w_k, x),   y_s(x) = argmax s(x)                          (2, 4)
        s_div(x) = sum over k with argmax s(w_k, x) != y_s(x) of alpha_k(x) s(w_k, x)      (6 to 8)
        W <- steps on  mean_x [ CE(f(x; W), y_s(x)) + lambda KL(s_div(x), s(W, x)) ]       (10)
        M_i <- the mean of those w_k with M(k) = i, if there are any                       (12)
        the head of each M_i <- that of W

Variants: alpha_k = 1/m; alpha divided, for s_div, by its sum over the dissenters; no heads.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy


def fedet_rounds(
    world, *, architectures, rounds, epochs, rate, diversity, steps, server_rate,
    confident, over_dissenters, heads,
):  # fmt: skip
    """Return W and M_1 to M_U after the last round; networks have a `head`."""
    large = world.network(0)
    small = [world.network(1 + i) for i in range(architectures)]
    for t in range(1, rounds + 1):
        trained = [[] for _ in small]
        for client in world.participants(t):
            i = world.group(client)
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            trained[i].append(local_training(small[i], images, labels, batches, rate))
        everyone = [model for group in trained for model in group]
        if heads:
            set_to_mean(large.head, [model.head for model in everyone])
        pseudo, dissent = consensus(everyone, world.public, confident, over_dissenters)
        for batch in world.public_batches(steps):
            said, wanted = large(world.public[batch]), dissent[batch]
            # xlogy: 0 log 0 = 0, where all clients agree.
            divergence = torch.xlogy(wanted, wanted) - wanted * said.log_softmax(1)
            loss = cross_entropy(said, pseudo[batch]) + diversity * divergence.sum(1).mean()
            descend(large, loss, server_rate)
        for model, group in zip(small, trained, strict=True):
            if group:
                set_to_mean(model, group)
            if heads:
                set_to_mean(model.head, [large.head])
    return [large, *small]


@torch.no_grad()
def consensus(models, images, confident, over_dissenters):
    """Return y_s [n] and s_div [n, C]."""
    s = torch.stack([model(images).softmax(1) for model in models])
    variance = ((s - s.mean(2, keepdim=True)) ** 2).mean(2)
    if not confident:
        variance = torch.ones_like(variance)
    alpha = variance / variance.sum(0)
    pseudo = (alpha[:, :, None] * s).sum(0).argmax(1)
    dissenting = alpha * (s.argmax(2) != pseudo)
    if over_dissenters:
        dissenting = dissenting / dissenting.sum(0).clamp(min=1e-30)  # zero if there are none
    return pseudo, (dissenting[:, :, None] * s).sum(0)


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


@torch.no_grad()
def set_to_mean(part, others):
    own = [list(other.parameters()) for other in others]
    for weight, *values in zip(part.parameters(), *own, strict=True):
        weight.copy_(sum(values) / len(values))
