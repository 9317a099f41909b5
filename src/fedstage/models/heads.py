"""The head of a model: the layers after its body, which do not depend on the body.

Models of different architectures can thus share a part (the representation layer of Fed-ET, section
3.1) or represent samples in one space (the projection head of MOON, section 3.2).

    z = a(W_1 relu(body(x)) + b_1)        logits = W_2 z + b_2        a = relu or nothing
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from fedstage.data.bags import Samples
from fedstage.settings.models import Head
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import PLAIN, compute, normalised_batches

#: The parts of a model with a head, with which the names of its tensors begin.
BODY, HEAD = "body", "head"


def with_head(body: nn.Module, settings: Head, classes: int) -> nn.Module:
    """Return a model of a body with `settings.hidden` outputs, and a head."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        relu1=nn.ReLU(),
        linear=nn.Linear(settings.hidden, settings.width),
        relu2=nn.ReLU() if settings.relu else nn.Identity(),
    )
    head: OrderedDict[str, nn.Module] = OrderedDict(
        representation=nn.Sequential(layers),
        classifier=nn.Linear(settings.width, classes),
    )
    return nn.Sequential(OrderedDict({BODY: body, HEAD: nn.Sequential(head)}))


def body_of(model: nn.Module) -> nn.Module:
    """Return the body of a model; the whole model if it has no head."""
    body: nn.Module = getattr(model, BODY, model)
    return body


def joined(model: nn.Module, upper: nn.Module) -> nn.Module:
    """Return the body of a model with another model in place of its head."""
    return nn.Sequential(body_of(model), upper)


def represent(
    model: nn.Module, pixels: Tensor, numerics: Numerics = PLAIN
) -> tuple[Tensor, Tensor]:
    """Return z [n, width] and logits [n, classes] of a model with a head, as `forward` does."""
    head = model.get_submodule(HEAD)

    def both(pixels: Tensor) -> tuple[Tensor, Tensor]:
        seen = head.get_submodule("representation")(body_of(model)(pixels))
        return seen, head.get_submodule("classifier")(seen)

    seen, logits = compute(both, pixels, numerics)
    return (seen.float(), logits.float()) if numerics.precision == "bf16" else (seen, logits)


@torch.no_grad()
def features_of(
    model: nn.Module, samples: Samples, info: Mapping[str, Any], numerics: Numerics
) -> Tensor:
    """Return z [n, width] of all samples by a model with a head, on the CPU."""
    model.eval()
    seen = [represent(model, batch, numerics)[0] for batch in normalised_batches(samples, info)]
    return torch.cat(seen).cpu()


# --- feature maps ---------------------------------------------------------------------------------

#: The name of the layer behind the last feature maps.
POOL = "pool"


def with_maps(model: nn.Module, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last feature maps [n, C, H, W] and the logits of a model with pooling.

    `Architecture.pools_maps` in the settings shows which architectures have it.
    """
    body = getattr(model, BODY, model)
    layers = dict(body.named_children())
    before = list(layers).index(POOL)
    seen = pixels
    for layer in list(layers.values())[:before]:
        seen = layer(seen)
    maps = seen
    for layer in list(layers.values())[before:]:
        seen = layer(seen)
    return maps, model.get_submodule(HEAD)(seen) if body is not model else seen


# --- prototypes in place of the last layer --------------------------------------------------------
#
# A model's last layer with one prototype per class, in place of a linear layer (FAFI).
#
#     logits_c = < f / |f|, p_c >,     f the pooled maps of the body
#
# After the logits the model also outputs f, which an aggregation of features reads.

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
