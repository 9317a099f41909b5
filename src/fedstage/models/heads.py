"""The head of a model: the layers after its body, which do not depend on the body.

Models of different architectures can thus share a part (the representation layer of Fed-ET, section
3.1) or represent samples in one space (the projection head of MOON, section 3.2).

    z = a(W_1 relu(body(x)) + b_1)        logits = W_2 z + b_2        a = relu or nothing
"""

from collections import OrderedDict

from torch import Tensor, nn

from fedstage.settings.models import Head
from fedstage.settings.numerics import Numerics
from fedstage.training.passes import PLAIN, compute

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
