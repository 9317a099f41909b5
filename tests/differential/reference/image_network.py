"""The network that draws images for DENSE and Co-Boosting, for 8x8 pixels."""

from torch import nn


def image_network(weights, latent, width):
    """Return z [n, latent] -> pixels [n, 1, 8, 8] in [0, 1], of weights in the order of layers."""
    network = nn.Sequential(
        nn.Linear(latent, 2 * width * 2 * 2),
        nn.Unflatten(1, (2 * width, 2, 2)),
        nn.BatchNorm2d(2 * width),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(2 * width, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 1, 3, padding=1),
        nn.Sigmoid(),
    )
    names = list(network.state_dict())
    network.load_state_dict(dict(zip(names, weights, strict=True)))
    return network.train()
