"""FedProto (Tan et al. 2022) and FedTGP (Zhang et al. 2024).

each client has a model of its own, of its architecture, with features z;  no P at first
for each round
    each participant n
        w_n <- steps on  CE + lambda mean_x mean_d (z_d(x) - P_{y,d})^2, 0 where y has no P
        p_{n,c} = mean of z(x) over its n_c samples of class c
    FedProto:  P_c = sum_n n_c p_{n,c} / sum_n n_c
    FedTGP:    P_c = W2 relu(W1 e_c + b1) + b2, after steps on
                   mean over p_{n,c} of  -log softmax( -|p_{n,c} - P| - margin at c )_c
               margin = min( max_c min_{d != c} |m_c - m_d|, tau ),  m_c = mean_n p_{n,c}
"""

import torch
from reference.network import CLASSES
from torch.nn.functional import cross_entropy


def fedproto(world, *, rounds, epochs, rate, weight, server):
    """Return the models of the last round's participants, and all clients' by number.

    `server` makes P, by class, of a list of (class, p, samples).
    """
    own, prototypes = {}, {}
    for t in range(1, rounds + 1):
        sent, taking_part = [], world.participants(t)
        for client in taking_part:
            model = own.setdefault(client, world.network(world.group(client)))
            images, labels = world.samples(client)
            for batch in world.batches(t, client, len(labels), epochs):
                seen = model.represent(images[batch])
                loss = cross_entropy(model.classify(seen), labels[batch])
                for label, prototype in prototypes.items():
                    away = (seen[labels[batch] == label] - prototype).square().mean(1)
                    loss = loss + weight * away.sum() / len(batch)
                descend(model, loss, rate)
            with torch.no_grad():
                seen = model.represent(images)
            for label in sorted(set(labels.tolist())):
                mine = seen[labels == label]
                sent.append((label, mine.mean(0), len(mine)))
        prototypes = server(sent)
    return [own[client] for client in taking_part], own


def averaged(sent):
    """Return FedProto's P."""
    classes = {label for label, _, _ in sent}
    return {
        c: sum(n * p for label, p, n in sent if label == c)
        / sum(n for label, _, n in sent if label == c)
        for c in classes
    }


def trained(first, *, steps, rate, tau):
    """Return a function that makes FedTGP's P; `first` has e, W1, b1, W2 and b2."""
    weights = [one.clone().requires_grad_() for one in first]

    def prototypes():
        e, w1, b1, w2, b2 = weights
        return torch.relu(e @ w1.T + b1) @ w2.T + b2

    def server(sent):
        means = {}
        for c in {label for label, _, _ in sent}:
            own = [p for label, p, _ in sent if label == c]
            means[c] = sum(own) / len(own)
        gaps = [min(float((m - other).norm()) for d, other in means.items() if d != c)
                for c, m in means.items()]  # fmt: skip
        margin = min(max(gaps), tau)
        for _ in range(steps):
            losses = []
            for c, p, _ in sent:
                said = -(p - prototypes()).norm(dim=1)
                said = said - margin * torch.eye(CLASSES)[c]
                losses.append(-said.log_softmax(0)[c])
            gradients = torch.autograd.grad(sum(losses) / len(losses), weights)
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight -= rate * gradient
        with torch.no_grad():
            return dict(enumerate(prototypes()))

    return server


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
