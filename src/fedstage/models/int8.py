"""INT8 by torchao: post-training static quantisation of a model's exported graph (PT2E).

Quantised are the weights of convolutions, linear layers and embeddings, and what convolutions and
linear layers read; all else, such as biases, stays float32. Batch normalisation is folded into the
convolution before it. A quantised network computes in float32 with the numbers that its 8 bits
stand for, on any device.

Importing torchao takes seconds, so this module is imported only where a line quantises.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.ao.quantization.fx.utils import assert_and_get_unique_device
from torch.export import Dim, export
from torch.fx import GraphModule
from torchao.quantization.pt2e import (
    MinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    allow_exported_model_train_eval,
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
)
from torchao.utils import _assert_and_get_unique_device

from fedstage.settings.quantisation import Int8
from fedstage.storage.tensors import Weights

_ATEN = torch.ops.aten
#: Operations with a quantised weight: the place of their input, if quantised, and of the weight.
_PLACES: dict[Any, tuple[int | None, int]] = {
    _ATEN.conv2d.default: (0, 1),
    _ATEN.linear.default: (0, 1),
    _ATEN.embedding.default: (None, 0),
}
_ANNOTATION = "quantization_annotation"  # where torchao looks for it
_LIMITS = {"weight": (-128, 127), "reduced": (0, 127), "full": (0, 255)}

#: What belongs to a weight, by the ending of its name.
SCALE, INPUT_SCALE, INPUT_ZERO_POINT = ".scale", ".input_scale", ".input_zero_point"


@dataclass(frozen=True)
class Layer:
    """A quantised operation of a prepared graph.

    Attributes
    ----------
    weight : str
        The name of its weight.
    observes_weight, observes_input : str or None
        The names of the observers of its weight, and of its input where that is quantised.
    """

    weight: str
    observes_weight: str
    observes_input: str | None


def quantise(
    model: nn.Module, settings: Int8, example: torch.Tensor, batches: Iterable[torch.Tensor]
) -> Weights:
    """Return the tensors of a model in INT8, with ranges that are calibrated on `batches`.

    Of a weight ``W`` [m, ...] they are int8 ``W`` and float32 ``W.scale`` ([] or [m]); of what its
    layer reads float32 ``W.input_scale`` [] and uint8 ``W.input_zero_point`` []; and the rest in
    float32. A number q of a weight stands for scale * q, of an input for scale * (q - zero_point).

    Parameters
    ----------
    example : torch.Tensor
        A batch of two samples, of which only shape and type count.
    """
    prepared = _prepare(model, settings, example)
    with torch.no_grad():
        for batch in batches:
            prepared(batch)
    tensors = _tensors(prepared)
    for layer in _layers(prepared):
        scale, _ = _observer(prepared, layer.observes_weight).calculate_qparams()
        tensors[layer.weight] = _rounded(tensors[layer.weight], scale, settings)
        tensors[layer.weight + SCALE] = scale if settings.weights == "per_channel" else scale[0]
        if layer.observes_input is not None:
            scale, zero = _observer(prepared, layer.observes_input).calculate_qparams()
            tensors[layer.weight + INPUT_SCALE] = scale[0]
            tensors[layer.weight + INPUT_ZERO_POINT] = zero[0].to(torch.uint8)
    return tensors


def restore(model: nn.Module, settings: Int8, example: torch.Tensor, tensors: Weights) -> nn.Module:
    """Return the quantised network of tensors that `quantise` gave.

    Parameters
    ----------
    model : nn.Module
        Of the architecture that was quantised, with any weights.

    Raises
    ------
    KeyError
        If a tensor is missing.
    """
    prepared = _prepare(model, settings, example)
    tensors = {name: value.to(example.device) for name, value in tensors.items()}
    values = {name: tensors[name] for name in _tensors(prepared)}
    for layer in _layers(prepared):
        scale = tensors[layer.weight + SCALE]
        values[layer.weight] = values[layer.weight] * _along(scale, values[layer.weight])
        _know(prepared, layer.observes_weight, scale, torch.zeros_like(scale, dtype=torch.int64))
        if layer.observes_input is not None:
            known = (tensors[layer.weight + kind] for kind in (INPUT_SCALE, INPUT_ZERO_POINT))
            _know(prepared, layer.observes_input, *known)
    for name, value in values.items():
        _attribute(prepared, name).data.copy_(value)
    converted: nn.Module = allow_exported_model_train_eval(convert_pt2e(prepared))
    return converted


def ranges(tensors: Weights) -> int:
    """Return how many ranges of inputs were calibrated."""
    return sum(name.endswith(INPUT_SCALE) for name in tensors)


# --- graphs ---------------------------------------------------------------------------------------


class _Annotator(Quantizer):  # type: ignore[misc]
    """Tells torchao what to quantise, and how."""

    def __init__(self, settings: Int8) -> None:
        super().__init__()
        self.input = _input_specification(settings)
        self.weight = _weight_specification(settings)

    def annotate(self, model: GraphModule) -> GraphModule:
        for node in model.graph.nodes:
            if node.target in _PLACES:
                read, weight = _PLACES[node.target]
                found = {node.args[weight]: self.weight}
                if read is not None:
                    found[node.args[read]] = self.input
                node.meta[_ANNOTATION] = QuantizationAnnotation(input_qspec_map=found)
        return model

    def validate(self, model: GraphModule) -> None:
        pass


class _Known(ObserverBase):  # type: ignore[misc]
    """In the place of an observer: what was observed is known."""

    def __init__(self, observer: Any, scale: torch.Tensor, zero_point: torch.Tensor) -> None:
        super().__init__(dtype=observer.dtype)
        self.qscheme, self.ch_axis = observer.qscheme, 0
        self.quant_min, self.quant_max = observer.quant_min, observer.quant_max
        self.register_buffer("scale", scale)
        self.register_buffer("zero_point", zero_point)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values

    def calculate_qparams(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.scale, self.zero_point


def _input_specification(settings: Int8) -> QuantizationSpec:
    lowest, highest = _LIMITS["reduced" if settings.reduce_range else "full"]
    return QuantizationSpec(
        dtype=torch.uint8,
        quant_min=lowest,
        quant_max=highest,
        qscheme=torch.per_tensor_affine,
        observer_or_fake_quant_ctr=MinMaxObserver,
    )


def _weight_specification(settings: Int8) -> QuantizationSpec:
    apart = settings.weights == "per_channel"
    lowest, highest = _LIMITS["weight"]
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=lowest,
        quant_max=highest,
        qscheme=torch.per_channel_symmetric if apart else torch.per_tensor_symmetric,
        ch_axis=0 if apart else None,
        observer_or_fake_quant_ctr=PerChannelMinMaxObserver if apart else MinMaxObserver,
    )


def _prepare(model: nn.Module, settings: Int8, example: torch.Tensor) -> GraphModule:
    """Return the graph of a model, batch normalisation folded, with an observer where it rounds."""
    _forget_graphs()
    model.eval()
    free = {0: Dim.AUTO} if example.dim() != 3 else {0: Dim.AUTO, 1: Dim.AUTO}  # bags
    exported = export(model, (example,), dynamic_shapes=(free,)).module(check_guards=False)
    prepared: GraphModule = prepare_pt2e(exported, _Annotator(settings))
    return prepared


def _forget_graphs() -> None:
    """Empty two caches of graphs' devices, which would keep all models of a worker alive."""
    _assert_and_get_unique_device.cache_clear()
    assert_and_get_unique_device.cache_clear()


def _layers(prepared: GraphModule) -> list[Layer]:
    return list(_found(prepared))


def _found(prepared: GraphModule) -> Iterator[Layer]:
    for node in prepared.graph.nodes:
        if node.target in _PLACES:
            read, place = _PLACES[node.target]
            arguments: Any = node.args  # observers, of which each has what it observes
            source = None if read is None else arguments[read].target
            yield Layer(arguments[place].args[0].target, arguments[place].target, source)


def _tensors(prepared: GraphModule) -> Weights:
    """Return copies of the float tensors that the graph reads, by their names."""
    names = (node.target for node in prepared.graph.nodes if node.op == "get_attr")
    found = {name: _attribute(prepared, name) for name in names}
    return {
        name: value.detach().clone() for name, value in found.items() if value.is_floating_point()
    }


def _attribute(module: nn.Module, name: str) -> torch.Tensor:
    """Return the tensor of a dotted name."""
    place, _, last = name.rpartition(".")
    found: torch.Tensor = getattr(module.get_submodule(place), last)
    return found


def _observer(prepared: GraphModule, name: str) -> Any:
    return prepared.get_submodule(name)


def _know(prepared: GraphModule, observer: str, scale: torch.Tensor, zero: torch.Tensor) -> None:
    place, _, name = observer.rpartition(".")
    known = _Known(_observer(prepared, observer), scale, zero)
    setattr(prepared.get_submodule(place), name, known)


def _rounded(weight: torch.Tensor, scale: torch.Tensor, settings: Int8) -> torch.Tensor:
    """Return the int8 numbers of a weight, by torch's own operation."""
    zero = torch.zeros_like(scale, dtype=torch.int64)
    operations, bounds = torch.ops.quantized_decomposed, (*_LIMITS["weight"], torch.int8)
    rounded: torch.Tensor
    if settings.weights == "per_channel":
        rounded = operations.quantize_per_channel(weight, scale, zero, 0, *bounds)
    else:
        rounded = operations.quantize_per_tensor(weight, float(scale), 0, *bounds)
    return rounded


def _along(scale: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return scales [] or [m] in the shape in which they multiply a weight [m, ...]."""
    return scale.reshape(-1, *[1] * (weight.dim() - 1)) if scale.dim() else scale
