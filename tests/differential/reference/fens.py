"""FENS (Algorithm 2), with the aggregation rules of its Section 3.6.

    phase 1   each client i trains once, from the common initial model, on D_i1, and sends pi_i
    phase 2   z_i = pi_i(x) in R^C.  For each round, each client
                  lambda_i <- lambda,  K times  lambda_i <- lambda_i - eta_l grad l(f_lambda(z), y),
              on batches of D_i2, and with FedAdam of Delta = (1/M) sum_i (lambda_i - lambda)
                  m <- b1 m + (1 - b1) Delta;   v <- b2 v + (1 - b2) Delta^2
                  lambda <- lambda + eta m / (sqrt(v) + eps)

f is one of

    averaging   (1/M) sum_i z_i
    weighted    sum_i l_{i,c} z_{i,c},  l_{i,c} the share of client i in the samples of class c
    linear      sum_i w_i z_i                                       M numbers, from 1/M
    per_class   sum_i l_{i,c} z_{i,c}                               M C numbers, from 1/M
    mlp         W_2^T relu(W_1^T z),  z = concat(z_1 ... z_M)       MCk + kC numbers
    voting      the c with the largest sum_i log P_i(v_i | c),  v_i = argmax z_i, where
                P_i(v | c) = (votes of i for v + 1) / (samples + C), of all D_j2 of class c
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy

CLASSES = 10
TRAINED = ("linear", "per_class", "mlp")
BETA1, BETA2, EPSILON = 0.9, 0.99, 1e-3


def fens(world, *, rule, epochs, rate, hidden=None, start=None, **phase_2):
    """Return the clients' models, lambda, and what FENS says about the test images.

    lambda is a list of tensors; `start` is the first one of an mlp, otherwise drawn.
    """
    initial = world.network()  # common to all clients
    models = [local_training(initial, world, i, epochs, rate) for i in range(world.clients)]
    learnt = start or first_lambda(world, models, rule, hidden)
    if rule in TRAINED:
        learnt = train(world, models, rule, learnt, **phase_2)
    return models, learnt, combine(rule, learnt, said_by(models, world.test_images))


def local_training(initial, world, client, epochs, rate):
    model = deepcopy(initial)
    images, labels = world.samples(client)
    weights = list(model.parameters())
    for batch in world.batches(1, client, len(labels), epochs):
        loss = cross_entropy(model(images[batch]), labels[batch])
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= rate * gradient
    return model


@torch.no_grad()
def said_by(models, images):
    """Return logits [M, n, C]."""
    return torch.stack([model(images) for model in models])


def combine(rule, learnt, z):
    """Return f_lambda(z), [n, C], of z [M, n, C]."""
    if rule == "averaging":
        return z.mean(0)
    if rule == "voting":
        votes = z.argmax(2)
        return sum(table[vote] for table, vote in zip(learnt[0], votes, strict=True))
    if rule == "linear":
        return (learnt[0][:, None, None] * z).sum(0)
    if rule == "mlp":
        return (torch.cat(list(z), 1) @ learnt[0]).relu() @ learnt[1]
    return (learnt[0][:, None, :] * z).sum(0)


def first_lambda(world, models, rule, hidden):
    """Return lambda before phase 2, or all of it for a rule that is not trained."""
    if rule == "voting":
        return [competency(world, models)]
    if rule == "weighted":
        return [class_shares(world)]
    clients, classes = world.clients, CLASSES
    if rule == "mlp":
        shapes = [(clients * classes, hidden), (hidden, classes)]
        bounds = [shape[0] ** -0.5 for shape in shapes]
        drawn = [torch.rand(shape, generator=world.torch) for shape in shapes]
        return [(2 * one - 1) * bound for one, bound in zip(drawn, bounds, strict=True)]
    shape = {"averaging": (), "linear": (clients,), "per_class": (clients, classes)}[rule]
    return [torch.full(shape, 1 / clients)]


def class_shares(world):
    """Return n_i^c / sum_j n_j^c, of the samples that models were trained on."""
    labels = [world.samples(client)[1] for client in range(world.clients)]
    counts = torch.stack([torch.bincount(own, minlength=CLASSES) for own in labels]).float()
    held = counts.sum(0)
    return torch.where(held > 0, counts / held, 1 / world.clients)


def competency(world, models):
    """Return log P_i(v | c), [M, votes, classes], from the counts of all clients."""
    counts = torch.ones(len(models), CLASSES, CLASSES)
    for client in range(world.clients):
        images, labels = world.samples(client, "aggregator")
        for i, votes in enumerate(said_by(models, images).argmax(2)):
            for vote, label in zip(votes.tolist(), labels.tolist(), strict=True):
                counts[i, vote, label] += 1
    return (counts / counts.sum(1, keepdim=True)).log()


def train(world, models, rule, learnt, *, rounds, steps, client_rate, server_rate):
    """Return lambda after the rounds of phase 2."""
    samples = [world.samples(client, "aggregator") for client in range(world.clients)]
    known = [(said_by(models, images), labels) for images, labels in samples]
    m, v = ([torch.zeros_like(one) for one in learnt] for _ in range(2))
    for _ in range(rounds):
        ends = []
        for client, (z, labels) in enumerate(known):
            if len(labels) == 0:
                continue
            own = learnt
            for _ in range(steps):
                batch = world.aggregator_batch(client, len(labels))
                own = descend(rule, own, z[:, batch], labels[batch], client_rate)
            ends.append(own)
        for j, before in enumerate(learnt):
            change = sum(own[j] - before for own in ends) / len(ends)
            m[j] = BETA1 * m[j] + (1 - BETA1) * change
            v[j] = BETA2 * v[j] + (1 - BETA2) * change**2
        moves = [server_rate * a / (b.sqrt() + EPSILON) for a, b in zip(m, v, strict=True)]
        learnt = [one + move for one, move in zip(learnt, moves, strict=True)]
    return learnt


def descend(rule, learnt, z, labels, rate):
    own = [one.detach().requires_grad_() for one in learnt]
    gradients = torch.autograd.grad(cross_entropy(combine(rule, own, z), labels), own)
    return [(one - rate * g).detach() for one, g in zip(own, gradients, strict=True)]
