"""Co-Boosting (Dai et al. 2024).

w <- 1/m;  D <- {};  for each epoch e
    G, z, y <- drawn
    `steps` times, with Adam on G and z:   x = G(z),  f(x) = sum_i w_i f_i(x)
        L = mean (1 - p_y)^h CE(f(x), y) - l mean T^2 KL( softmax(f / T), softmax(g / T) )
        with p_y as a number
    for batches of D, if e > 0:  w <- clamp(w - mu d^e sign grad_w CE(f(x), y), 0, 1)
    D <- D + the x of the lowest L, in 8 bits
    for batches of D:  x <- x + eps sign grad_x u . softmax(f(x) / 4),  u uniform in [-1, 1]
        the student g descends  tau^2 KL( softmax(f(x) / tau), softmax(g(x) / tau) )
"""

import torch
from reference.image_network import image_network
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, softmax


def coboosting(
    world, *, epochs, steps, rate, clip, hardness, weight, temperature, mu, decay, eps,
    student_rate, momentum, tau,
):  # fmt: skip
    """Return D, its labels, w and the student."""
    student, pool, labels = world.student(), torch.empty(0, 1, 8, 8), torch.empty(0).long()
    sgd = torch.optim.SGD(student.parameters(), lr=student_rate, momentum=momentum)
    w = torch.full((len(world.clients),), 1 / len(world.clients))
    for epoch in range(epochs):
        network = image_network(world.weights(epoch), world.latent, world.width)
        z, y = world.start(epoch)
        z.requires_grad_()
        adam = torch.optim.Adam([*network.parameters(), z], lr=rate, betas=(0.5, 0.999))
        lowest = None
        student.eval()
        for _ in range(steps):
            drawn = network(z)
            x = world.standardised(drawn)
            teacher = weighted(world.clients, w, x)
            right = softmax(teacher, 1)[torch.arange(len(y)), y].detach()
            hard = (1 - right) ** hardness * cross_entropy(teacher, y, reduction="none")
            loss = hard.mean() - weight * divergence(teacher, student(x), temperature).mean()
            if lowest is None or loss.item() < lowest:
                lowest, kept = loss.item(), drawn.detach()
            adam.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(network.parameters(), clip)
            adam.step()
        if epoch:
            for batch in world.weight_batches(epoch, len(pool)):
                at = w.clone().requires_grad_()
                said = weighted(world.clients, at, world.standardised(pool[batch]))
                cross_entropy(said, labels[batch]).backward()
                w = (w - mu * decay**epoch * at.grad.sign()).clamp(0, 1)
        pool, labels = torch.cat([pool, (kept * 255).round() / 255]), torch.cat([labels, y])
        student.train()
        for batch in world.batches(epoch, len(pool)):
            pixels = pool[batch].requires_grad_()
            said = softmax(weighted(world.clients, w, world.standardised(pixels)) / 4, 1)
            (world.directions(epoch, said.shape) * said).sum().backward()
            x = world.standardised((pixels + eps * pixels.grad.sign()).detach())
            with torch.no_grad():
                teacher = weighted(world.clients, w, x)
            loss = divergence(teacher, student(x), tau).mean()
            sgd.zero_grad()
            loss.backward()
            sgd.step()
    return pool, labels, w, student


def weighted(clients, w, x):
    return sum(share * client(x) for share, client in zip(w, clients, strict=True))


def divergence(teacher, student, tau):
    """Return tau^2 KL of each sample."""
    p, q = log_softmax(teacher / tau, 1), log_softmax(student / tau, 1)
    return tau**2 * (p.exp() * (p - q)).sum(1)
