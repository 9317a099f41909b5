"""FedGen (Zhu et al. 2021), as public implementations have it.

for each round t
    each participant n trains from w to w_n, by steps on
        CE(f(x), y) + lambda CE( h(G(e, y')), y' )    the second only if there is a G
    w <- sum_n p_n w_n;     G <- Adam steps on  CE( sum_n p_n h_n(G(e, y)), y )
    G(e, y) = W2 relu( a norm(W1 [e, y] + b1) + b ) + b2,    h_n: the classifier of w_n

y is drawn by the counts of labels of the participants of the last round in which G has learnt.
"""

from copy import deepcopy

import torch
from reference.feddf import average, descend
from reference.network import CLASSES
from torch.nn.functional import cross_entropy


def fedgen(
    world, *, rounds, epochs, rate, weight, generator_rate, first, drawn, drawn_by_clients
):  # fmt: skip
    """Return w; `first` has G's first weights, and `drawn` gives the [e, y] and y of all steps."""
    model, counts = world.network(), None
    made = [one.clone().requires_grad_() for one in first]
    for t in range(1, rounds + 1):
        trained, held = [], []
        for client in world.participants(t):
            own = deepcopy(model)
            images, labels = world.samples(client)
            batches = world.batches(t, client, len(labels), epochs)
            more = drawn_by_clients(t, client, counts, [len(batch) for batch in batches])
            for batch, (given, wanted) in zip(batches, more, strict=True):
                loss = cross_entropy(own(images[batch]), labels[batch])
                if counts is not None:
                    with torch.no_grad():
                        z = features(made, given)
                    loss = loss + weight * cross_entropy(own.classify(z), wanted)
                descend(own, loss, rate)
            trained.append(own)
            held.append([int((labels == y).sum()) for y in range(CLASSES)])
        sizes = [sum(one) for one in held]
        shares = [size / sum(sizes) for size in sizes]
        counts = [sum(of_class) for of_class in zip(*held, strict=True)]
        adam = torch.optim.Adam(made, lr=generator_rate)
        for given, wanted in drawn(t, counts):
            z = features(made, given)
            said = sum(p * own.classify(z) for p, own in zip(shares, trained, strict=True))
            adam.zero_grad()
            cross_entropy(said, wanted).backward(inputs=made)
            adam.step()
        model = average(trained, shares)
    return model


def features(made, given):
    w1, b1, a, b, w2, b2 = made
    hidden = given @ w1.T + b1
    apart = hidden - hidden.mean(0)
    hidden = a * apart / (apart.square().mean(0) + 1e-5).sqrt() + b
    return torch.relu(hidden) @ w2.T + b2
