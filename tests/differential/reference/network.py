"""The networks of the references: plain modules with the layers' names of the artefacts."""

import torch
from torch import nn
from torch.nn.functional import max_pool2d, pad, relu

CLASSES = 10


class SmallNetwork(nn.Module):
    """Two 3x3 convolutions, each with 2x2 max-pooling, and two linear layers, for 8x8 pixels."""

    def __init__(self, width=4, hidden=16, outputs=CLASSES):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.linear1 = nn.Linear(2 * width * 2 * 2, hidden)
        self.linear2 = nn.Linear(hidden, outputs)

    def forward(self, images):
        hidden = max_pool2d(relu(self.conv1(images)), 2)
        hidden = max_pool2d(relu(self.conv2(hidden)), 2)
        return self.linear2(relu(self.linear1(hidden.flatten(1))))


class HeadedNetwork(nn.Module):
    """A body that gives `hidden` numbers, and the head of MOON, or with ReLU that of Fed-ET."""

    def __init__(self, body, hidden, width, rectified):
        super().__init__()
        layers = {"linear": nn.Linear(hidden, width)}
        parts = {"representation": nn.ModuleDict(layers), "classifier": nn.Linear(width, CLASSES)}
        self.body, self.head, self.rectified = body, nn.ModuleDict(parts), rectified

    def represent(self, images):
        seen = self.head["representation"]["linear"](relu(self.body(images)))
        return relu(seen) if self.rectified else seen

    def classify(self, seen):
        return self.head["classifier"](seen)

    def forward(self, images):
        return self.classify(self.represent(images))


class LogisticRegression(nn.Module):
    """One linear layer on 8x8 pixels."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8 * 8, CLASSES)

    def forward(self, images):
        return self.linear(images.flatten(1))


class Block(nn.Module):
    """Two 3x3 convolutions beside every `stride`-th pixel, with zeros for further channels."""

    def __init__(self, channels, width, stride, normed):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=not normed)
        self.norm1 = nn.BatchNorm2d(width) if normed else nn.Identity()
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=not normed)
        self.norm2 = nn.BatchNorm2d(width) if normed else nn.Identity()
        self.stride, self.extra = stride, width - channels

    def forward(self, images):
        beside = images[:, :, :: self.stride, :: self.stride]
        beside = pad(beside, (0, 0, 0, 0, 0, self.extra))
        hidden = relu(self.norm1(self.conv1(images)))
        return relu(self.norm2(self.conv2(hidden)) + beside)


class Extractor(nn.Module):
    """A convolution and blocks, for 8x8 pixels."""

    def __init__(self, blocks, width, normed):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1, bias=not normed)
        self.norm = nn.BatchNorm2d(width) if normed else nn.Identity()
        self.stage = nn.Sequential(*(Block(width, width, 1, normed) for _ in range(blocks)))

    def forward(self, images):
        return self.stage(relu(self.norm(self.conv(images))))


class PooledLinear(nn.Module):
    """One linear layer on the means of feature maps."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, CLASSES)

    def forward(self, maps):
        return self.linear(maps.mean((2, 3)))


class LowerNetwork(nn.Module):
    """An extractor and a classifier, as FedGKT's clients have them."""

    def __init__(self, blocks, width, normed):
        super().__init__()
        self.body, self.head = Extractor(blocks, width, normed), PooledLinear(width)

    def forward(self, images):
        return self.head(self.body(images))


class UpperNetwork(PooledLinear):
    """Three stages of blocks for feature maps, as FedGKT's server has them."""

    def __init__(self, blocks, width, normed):
        super().__init__(4 * width)
        for number, (channels, wider) in enumerate(((1, 1), (1, 2), (2, 4)), 1):
            first = Block(channels * width, wider * width, 1 if number == 1 else 2, normed)
            others = (Block(wider * width, wider * width, 1, normed) for _ in range(blocks - 1))
            setattr(self, f"stage{number}", nn.Sequential(first, *others))

    def forward(self, maps):
        return super().forward(self.stage3(self.stage2(self.stage1(maps))))


class Prototypes(nn.Module):
    """A prototype a class, of 64 numbers."""

    def __init__(self):
        super().__init__()
        self.prototypes = nn.Parameter(torch.zeros(CLASSES, 64))


class PrototypeNetwork(nn.Module):
    """A residual network of eight layers without norms, which ends in prototypes."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        for number, (channels, width) in enumerate(((16, 16), (16, 32), (32, 64)), 1):
            block = Block(channels, width, 1 if number == 1 else 2, normed=False)
            setattr(self, f"stage{number}", nn.Sequential(block))
        self.linear = Prototypes()

    def features(self, images):
        maps = self.stage3(self.stage2(self.stage1(relu(self.conv(images)))))
        return maps.mean((2, 3))


def draw_weights(network, generator):
    """He et al. 2015 for convolutions, U(-1/sqrt(fan_in), 1/sqrt(fan_in)) for linear layers."""
    with torch.no_grad():
        layers = [layer for layer in network.modules() if hasattr(layer, "weight")]
        for layer in layers:
            fan_in = layer.weight[0].numel()
            if isinstance(layer, nn.Conv2d):
                layer.weight.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
                layer.bias.zero_()
            else:
                bound = fan_in**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)
    return network
