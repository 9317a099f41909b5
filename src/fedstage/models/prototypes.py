"""A model's last layer with one prototype per class, in place of a linear layer (FAFI).

    logits_c = < f / |f|, p_c >,     f the pooled maps of the body

After the logits the model also outputs f, which an aggregation of features reads.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

#: The layer that it replaces.
LAST = "linear"
#: The tensor of its prototypes.
PROTOTYPES = f"{LAST}.prototypes"


class PrototypeLayer(nn.Module):
    """Maps features to similarities and the features themselves."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(torch.empty(classes, width))

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the prototypes from N(0, 1), as released."""
        self.prototypes.normal_(generator=generator)

    def forward(self, features: Tensor) -> Tensor:
        """Map f [n, width] to [n, classes + width]."""
        return torch.cat([normalize(features) @ self.prototypes.T, features], dim=1)


def with_prototypes(model: nn.Module, classes: int) -> nn.Module:
    """Return a model that pools its last maps, with prototypes in place of its last layer."""
    last = model.get_submodule(LAST)
    assert isinstance(last, nn.Linear), "checked by the settings: such models end in one"
    setattr(model, LAST, PrototypeLayer(last.in_features, classes))
    return model


def prototypes_of(model: nn.Module) -> Tensor:
    """Return the prototypes [classes, width] of a model that has them."""
    return model.get_parameter(PROTOTYPES)
