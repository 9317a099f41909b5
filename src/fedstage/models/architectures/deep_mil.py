"""DeepMIL: gated attention over the instances of a bag (Ilse et al., ICML 2018, Eq. 9).

Sizes are from FLamby's baseline for Camelyon16. In the baseline, attention includes the zeros that
pad a bag to 10,000 instances; here it does not, so a bag's logits do not depend on other bags.
"""

import torch
from torch import nn

from fedstage.models.layers import one_output
from fedstage.settings.models import DeepMil

HIDDEN = (128, 64)  # units of the classifier


class GatedAttention(nn.Module):
    """The mean of a bag's instances, weighted by softmax over w^T (tanh(V h) * sigmoid(U h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, instances: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Map instances [n, L, M], padding where not `real` [n, L], to bags [n, M]."""
        gated = torch.tanh(self.value(instances)) * torch.sigmoid(self.gate(instances))
        scores = self.score(gated).squeeze(-1).masked_fill(~real, -torch.inf)
        bags: torch.Tensor = (scores.softmax(1)[:, None] @ instances).squeeze(1)
        return bags


class DeepMilNetwork(nn.Module):
    """A network that embeds instances, averages them by attention and classifies the bag."""

    def __init__(self, settings: DeepMil, features: int, classes: int) -> None:
        super().__init__()
        width = settings.width
        self.embed = nn.Linear(features, width)
        self.attention = GatedAttention(width)
        self.classifier = nn.Sequential(
            nn.Linear(width, HIDDEN[0]),
            nn.ReLU(),
            nn.Linear(HIDDEN[0], HIDDEN[1]),
            nn.ReLU(),
            nn.Linear(HIDDEN[1], settings.outputs),
        )
        self.logits = one_output(settings, classes)

    def forward(self, bags: torch.Tensor) -> torch.Tensor:
        """Map bags [n, L, 1 + F] that `Bags.padded` returned to logits [n, classes]."""
        real, features = bags[..., 0] > 0, bags[..., 1:]
        embedded: torch.Tensor = self.attention(self.embed(features), real)
        logits: torch.Tensor = self.logits(self.classifier(embedded))
        return logits


def network(settings: DeepMil, shape: tuple[int, ...], classes: int) -> nn.Module:
    """Return a network for bags of instances with `shape` [F] features."""
    return DeepMilNetwork(settings, shape[0], classes)
