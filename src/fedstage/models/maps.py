"""The last feature maps of a model: the input of its pooling."""

from torch import Tensor, nn

from fedstage.models.heads import BODY, HEAD

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
