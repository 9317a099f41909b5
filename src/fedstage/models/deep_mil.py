"""DeepMIL: gated attention over the instances of a bag (Ilse et al., ICML 2018, Eq. 9).

Sizes are those of FLamby's baseline for Camelyon16. There instances that pad a bag to 10,000 take
part in the attention; here they do not, so that what is said of a bag does not depend on others.
"""

import torch
from torch import nn

from fedstage.models.one_output import one_output
from fedstage.settings.models import DeepMil

HIDDEN = (128, 64)  # units of the classifier


class GatedAttention(nn.Module):
    """The mean of a bag's instances, weighted by softmax over w^T (tanh(V h) * sigmoid(U h))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, instances: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """Map instances [n, L, M], of which those are `there` [n, L] (bool), to bags [n, M]."""
        gated = torch.tanh(self.value(instances)) * torch.sigmoid(self.gate(instances))
        scores = self.score(gated).squeeze(-1).masked_fill(~there, -torch.inf)
        bags: torch.Tensor = (scores.softmax(1)[:, None] @ instances).squeeze(1)
        return bags


class DeepMilNetwork(nn.Module):
    """Instances embedded, averaged by attention, and the bag classified."""

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
            nn.Linear(HIDDEN[1], settings.outputs or classes),
        )
        one = settings.outputs == 1
        self.logits = one_output(settings, classes) if one else nn.Identity()

    def forward(self, bags: torch.Tensor) -> torch.Tensor:
        """Map padded bags [n, L, 1 + F], as `Bags.padded` gives them, to logits [n, classes]."""
        there, features = bags[..., 0] > 0, bags[..., 1:]
        bag: torch.Tensor = self.attention(self.embed(features), there)
        logits: torch.Tensor = self.logits(self.classifier(bag))
        return logits


def deep_mil(settings: DeepMil, features: int, classes: int) -> nn.Module:
    """Return a network for bags of instances with so many features.

    Raises
    ------
    FedstageError
        If one output is to tell more than two classes.
    """
    return DeepMilNetwork(settings, features, classes)
