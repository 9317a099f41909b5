"""FAFI (Zeng et al. 2025): features and prototypes in one shot, and one fusion of all features.

    each client i minimises, from the common initial model on, by steps on batches, of which it sees
    two views of each image; f the features, g = f / |f|, p the prototypes
        (1 + n) CE(<g, p>, y) + s mean_c CE(<p_c, p>, c)
        - a mean over views v of mean over other views u of the class of v of
              log( exp(<g_v, g_u> / tau) / sum_{w != v} exp(<g_v, g_w> / tau) )
    with gradients no longer than `longest`
    prediction   argmax_c <F, mean_i p_{i,c}>,   F = sum_i (n_i / n) f_i(x)

The views are given.
"""

import torch
from torch.nn.functional import cross_entropy


def fafi(world, views, *, epochs, rate, near, apart, alike, tau, longest):
    """Return the clients' models, and what they say together about the test images."""
    models, sizes = [], []
    for client in range(world.clients):
        model = world.network()
        images, labels = world.samples(client)
        for batch in world.batches(1, client, len(labels), epochs):
            seen = torch.cat(views(client, images[batch]))
            loss = loss_of(model, seen, labels[batch].repeat(2), near, apart, alike, tau)
            descend(model, loss, rate, longest)
        models.append(model)
        sizes.append(len(labels))
    return models, fused(models, sizes, world.test_images)


def loss_of(model, seen, y, near, apart, alike, tau):
    features, prototypes = model.features(seen), model.linear.prototypes
    unit = features / features.norm(dim=1, keepdim=True)
    loss = (1 + near) * cross_entropy(unit @ prototypes.T, y)
    own = [-(row.log_softmax(0)[c]) for c, row in enumerate(prototypes @ prototypes.T)]
    loss = loss + apart * sum(own) / len(own)
    shares = []
    for v, row in enumerate(unit @ unit.T / tau):
        others = [w for w in range(len(y)) if w != v]
        whole = torch.log(row[others].exp().sum())
        same = [row[u] - whole for u in others if y[u] == y[v]]
        shares.append(sum(same) / len(same))
    return loss - alike * sum(shares) / len(shares)


def descend(model, loss, rate, longest):
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    length = torch.cat([one.flatten() for one in gradients]).norm()
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight -= rate * gradient * min(1.0, longest / (float(length) + 1e-6))


@torch.no_grad()
def fused(models, sizes, images):
    shares = [size / sum(sizes) for size in sizes]
    features = sum(share * one.features(images) for share, one in zip(shares, models, strict=True))
    prototypes = sum(one.linear.prototypes for one in models) / len(models)
    return features / features.norm(dim=1, keepdim=True) @ prototypes.T
