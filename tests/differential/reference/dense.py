"""DENSE (Zhang et al. 2022).

D <- {};  for each epoch
    G, z, y <- drawn
    `steps` times, with Adam on G and z:   x = G(z),  f(x) = (1/m) sum_i f_i(x)
        L = CE(f(x), y) + l1 L_BN - l2 mean [argmax g(x) != argmax f(x)] KL(f(x), g(x))
        L_BN = (1/m or 1) sum_i sum_l |mean_l(x) - mean_il| + |var_l(x) - var_il|
    D <- D + the x of the lowest L, in 8 bits
    for batches of D:  the student g descends  tau^2 KL( softmax(f(x) / tau), softmax(g(x) / tau) )
"""

import torch
from reference.image_network import image_network
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax


def dense(
    world, *, epochs, steps, rate, l1, l2, student_rate, momentum, tau, over_clients, masked=True
):
    """Return D, its labels, and the student."""
    student, pool, labels = world.student(), [], []
    sgd = torch.optim.SGD(student.parameters(), lr=student_rate, momentum=momentum)
    for epoch in range(epochs):
        network = image_network(world.weights(epoch), world.latent, world.width)
        z, y = world.start(epoch)
        z.requires_grad_()
        adam = torch.optim.Adam([*network.parameters(), z], lr=rate, betas=(0.5, 0.999))
        lowest = None
        student.eval()
        for step in range(steps):
            drawn = network(z)
            x = world.standardised(world.augmented(epoch, step, drawn))
            teacher, own = mean_logits(world.clients, x), student(x)
            away = divergence(teacher, own, 1.0)
            if masked:
                away = away * (teacher.argmax(1) != own.argmax(1))
            loss = cross_entropy(teacher, y) - l2 * away.mean()
            if l1:
                far = sum(from_running(client, x) for client in world.clients)
                loss = loss + l1 * (far / len(world.clients) if over_clients == "mean" else far)
            if lowest is None or loss.item() < lowest:
                lowest, kept = loss.item(), drawn.detach()
            adam.zero_grad()
            loss.backward()
            adam.step()
        pool.append((kept * 255).round() / 255)
        labels.append(y)
        student.train()
        every = torch.cat(pool)
        for batch in world.batches(epoch, len(every)):
            x = world.standardised(every[batch])
            with torch.no_grad():
                teacher = mean_logits(world.clients, x)
            loss = divergence(teacher, student(x), tau).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    return torch.cat(pool), torch.cat(labels), student


def mean_logits(clients, x):
    return sum(client(x) for client in clients) / len(clients)


def from_running(client, x):
    """Return the distances of a sequential model's batch statistics from the running ones."""
    far = 0.0
    for layer in client:
        if isinstance(layer, nn.BatchNorm2d):
            values = x.transpose(0, 1).flatten(1)
            far += (values.mean(1) - layer.running_mean).norm()
            far += (values.var(1, unbiased=False) - layer.running_var).norm()
        x = layer(x)
    return far


def divergence(teacher, student, tau):
    """Return tau^2 KL of each sample."""
    p, q = log_softmax(teacher / tau, 1), log_softmax(student / tau, 1)
    return tau**2 * (p.exp() * (p - q)).sum(1)
