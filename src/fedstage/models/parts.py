"""Parts of a model, and models of which only some parts are trained.

What is not trained is kept in buffers that no state dict has. So updates, averages, noise, masks,
control variates and files are of the trained tensors alone, and nothing else needs to know.
"""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from math import sqrt
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import register_parametrization

from fedstage.errors import FedstageError
from fedstage.models.heads import HEAD
from fedstage.settings.models import Lora, LowRank
from fedstage.weights import Tensors, Weights

_NORMS = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)


def tensors_of(model: nn.Module, parts: Sequence[str], key: str = "model.trainable") -> list[str]:
    """Return the names of the tensors of parts, in the order of the model's state.

    `head` is the model's head or, without one, its last layer with parameters; `norm` are its
    norms; any other part is a layer or tensor by its name, in which `*` stands for any letters.

    Raises
    ------
    FedstageError
        If a part, which the setting `key` gives, has no tensors.
    """
    state = list(model.state_dict())
    last = [name for name, _ in model.named_parameters()][-1:]
    of: dict[str, list[str]] = {
        "head": [HEAD] if hasattr(model, HEAD) else [name.rpartition(".")[0] for name in last],
        "norm": [name for name, layer in model.named_modules() if isinstance(layer, _NORMS)],
    }
    chosen = set[str]()
    for part in parts:
        named = [f"{name}.*" for name in of.get(part, [part])]
        found = [name for name in state if any(fnmatchcase(f"{name}.", one) for one in named)]
        if not found:
            raise FedstageError(
                f"{key} = {part!r}: the model has no such tensors; it must be head, norm, or a "
                f"layer or tensor such as {state[0]}"
            )
        chosen.update(found)
    return [name for name in state if name in chosen]


def kept_by_clients(recipe: Any, model: nn.Module) -> list[str]:
    """Return the names of the tensors that stay with each client."""
    kept = tensors_of(model, recipe.personal.parts, "personal") if recipe.personal else []
    if recipe.aggregation.batch_norm == "local":
        parameters = dict(model.named_parameters())
        kept += [name for name in model.state_dict() if name not in {*parameters, *kept}]
    return kept


class Product(nn.Module):
    """Adds (alpha / rank) B A to a weight, whose dimensions after the first count as one.

    With `merged`, the state also has the sum of the products of the rounds before, which is added.
    """

    merged: torch.Tensor

    def __init__(self, weight: torch.Tensor, how: LowRank) -> None:
        super().__init__()
        self.in_state = ["b"] if how.freeze_a else ["a", "b"]
        self.scale = how.alpha / how.rank
        self.a = nn.Parameter(weight.new_zeros(how.rank, weight[0].numel()))
        self.b = nn.Parameter(weight.new_zeros(len(weight), how.rank))
        self.merges = how.merged
        if how.merged:
            self.in_state.append("merged")
            self.register_buffer("merged", torch.zeros_like(weight))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return W + (alpha / rank) B A."""
        if self.merges:
            weight = weight + self.merged
        return weight + self.scale * (self.b @ self.a).view_as(weight)

    def draw(self, generator: torch.Generator) -> None:
        """Draw A from U(-1/sqrt(fan_in), 1/sqrt(fan_in)), as the released code of LoRA; B is 0."""
        bound = 1 / sqrt(self.a.shape[1])
        nn.init.uniform_(self.a, -bound, bound, generator=generator)
        nn.init.zeros_(self.b)


def _products(model: nn.Module) -> dict[str, Product]:
    """Return the products that a model's weights get, each with the beginning of its names."""
    named = model.named_modules()
    return {f"{place}.": layer for place, layer in named if isinstance(layer, Product)}


def merged_names(model: nn.Module) -> list[str]:
    """Return the names of what clients receive and never send: sums of the rounds' products."""
    return [f"{place}merged" for place, layer in _products(model).items() if layer.merges]


def merge(
    model: nn.Module,
    begun: Tensors,
    updates: Sequence[Tensors],
    shares: Sequence[float],
    generator: torch.Generator,
) -> Weights:
    """Return the sums of products after a round, and the A and B that the next one begins with.

    M + (alpha / rank) sum_n p_n B_n A_n, with the shares p_n: the product of all clients' stacked
    matrices (Wang et al. 2024, FLoRA, Eq. 6). Sums are in float64.
    """
    new: Weights = {}
    for place, layer in _products(model).items():
        if layer.merges:
            total = begun[f"{place}merged"].double()
            for update, share in zip(updates, shares, strict=True):
                a, b = (update[f"{place}{name}"].double() for name in "ab")
                total += layer.scale * share * (b @ a).view_as(total)
            layer.draw(generator)
            layer.merged.copy_(total)
            new |= {f"{place}{name}": value for name, value in layer.state_dict().items()}
    return new


def freeze(
    model: nn.Module, parts: Sequence[str | Lora], draws: torch.Generator | None = None
) -> Weights:
    """Leave only these parts of a model in its state; return its other tensors, by name.

    They are the model's own: who writes to them changes the model. Norms whose running statistics
    are among them normalise by these in training, too. Products are drawn by `draws`, if it is
    given; without it they are zero.
    """
    kept = {*tensors_of(model, [part for part in parts if isinstance(part, str)])}
    for part in parts:
        if isinstance(part, Lora):
            _add_products(model, part.lora, kept, draws)
    for place, product in _products(model).items():
        kept.update(f"{place}{name}" for name in product.in_state)
    rest = {name: value for name, value in model.state_dict().items() if name not in kept}
    for name, value in rest.items():
        place, _, own = name.rpartition(".")
        layer = model.get_submodule(place)
        is_buffer = own in dict(layer.named_buffers(recurse=False))
        if is_buffer and isinstance(layer, _NORMS):
            layer.eval()
            vars(layer)["train"] = _stay
            vars(layer)["track_running_stats"] = False  # or files would have to have its counter
        elif not is_buffer:
            delattr(layer, own)
        layer.register_buffer(own, value, persistent=False)
    return rest


def _stay(mode: bool = True) -> Any:
    """Take the place of `train` in a norm that never trains."""


def _add_products(
    model: nn.Module, how: LowRank, kept: Collection[str], draws: torch.Generator | None
) -> None:
    """Add products to the weights that are targets and not trained themselves."""
    key = "model.trainable.lora.targets"
    named, weights = tensors_of(model, how.targets, key), dict(model.named_parameters())
    targets = [name for name in named if name not in kept and name in weights]
    targets = [name for name in targets if weights[name].ndim > 1]
    if not targets:
        raise FedstageError(
            f"{key} = {list(how.targets)}: must name weights of two or more dimensions that are "
            "not trained themselves"
        )
    for name in targets:
        place, _, own = name.rpartition(".")
        product = Product(weights[name], how)
        if draws is not None:
            product.draw(draws)
        register_parametrization(model.get_submodule(place), own, product)
