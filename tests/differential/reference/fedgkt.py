"""FedGKT (He et al. 2020, Algorithm 1), where some clients take part in a round (Fed-ET, App. B).

    each client has an extractor E_i and a classifier C_i, the server a model S that follows E_i
    for each round t
        each participant i, with samples x and labels y
            z_s = S(E_i(x)) as the round starts, from round 2 on
            E_i, C_i <- steps on  CE(z_c, y) + alpha KL_T(z_s, z_c),  z_c = C_i(E_i(x))
            sends H_i = E_i(x), z_c, y
        server, with what all participants have sent
            S <- steps on  KL_T(z_c, z_s) + alpha CE(z_s, y),  z_s = S(H)

    KL_T(q, p) = T^2 mean sum_c softmax(q / T) (log softmax(q / T) - log softmax(p / T))

What is said or sent comes of models in evaluation mode, and no gradient flows through it.
"""

import torch
from torch.nn.functional import cross_entropy


def fedgkt(world, *, rounds, epochs, rate, steps, server_rate, alpha, temperature):
    """Return the server's model, the clients' by number, and who took part in the last round."""
    server, own = world.network(0), {}
    for t in range(1, rounds + 1):
        sent = []
        for client in world.participants(t):
            model = own.setdefault(client, world.network(1 + world.group(client)))
            images, labels = world.samples(client)
            said = said_by(server, said_by(model.body, images)) if t > 1 else None
            model.train()
            for batch in world.batches(t, client, len(labels), epochs):
                logits = model(images[batch])
                loss = cross_entropy(logits, labels[batch])
                if said is not None:
                    loss = loss + alpha * divergence(said[batch], logits, temperature)
                descend(model, loss, rate)
            features = said_by(model.body, images)
            sent.append((features, said_by(model.head, features), labels))
        features, said, labels = (torch.cat(parts) for parts in zip(*sent, strict=True))
        server.train()
        for _ in range(steps):
            logits = server(features)
            labelled = cross_entropy(logits, labels)
            loss = divergence(said, logits, temperature) + alpha * labelled
            descend(server, loss, server_rate)
    return server, own, world.participants(rounds)


def said_by(model, inputs):
    model.eval()
    with torch.no_grad():
        return model(inputs)


def divergence(teacher, student, temperature):
    q, log_q = (teacher / temperature).softmax(1), (teacher / temperature).log_softmax(1)
    log_p = (student / temperature).log_softmax(1)
    return temperature**2 * (q * (log_q - log_p)).sum(1).mean()


def descend(model, loss, rate):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient
