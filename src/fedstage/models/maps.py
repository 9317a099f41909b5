"""The last feature maps of a model: what its pooling takes."""

from torch import Tensor, nn

from fedstage.models.heads import BODY, HEAD

#: The name of the layer behind the last feature maps.
POOL = "pool"


def with_maps(model: nn.Module, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last feature maps [n, C, H, W] and the logits of a model that has a pooling.

    Which architectures do is `Architecture.pools_maps` of the settings.
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
