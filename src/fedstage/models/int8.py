"""INT8 by torchao: post-training static quantisation of a model's exported graph (PT2E).

The weights of convolutions, linear layers and embeddings are quantised, and the inputs of
convolutions and linear layers; everything else, such as biases, stays float32. Batch normalisation
is folded into the convolution before it. A quantised network computes in float32 with the values
of its 8-bit numbers, on any device.

Importing torchao takes seconds, so this module is imported only for lines that quantise.
"""

from collections.abc import Iterable
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
)
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import (
    QuantizationAnnotation,
    QuantizationSpec,
    Quantizer,
)
from torchao.utils import _assert_and_get_unique_device

from fedstage.weights import Weights

_ATEN = torch.ops.aten
#: Operations with a quantised weight: positions of their input, if quantised, and of the weight.
_POSITIONS: dict[Any, tuple[int | None, int]] = {
    _ATEN.conv2d.default: (0, 1),
    _ATEN.linear.default: (0, 1),
    _ATEN.embedding.default: (None, 0),
}
_ANNOTATION = "quantization_annotation"  # torchao's key
#: Least and greatest numbers of inputs (half of the range, as FENS released) and of weights.
_INPUTS, _WEIGHTS = (0, 127), (-128, 127)

#: Suffixes of the tensors that belong to a weight.
SCALE, INPUT_SCALE, INPUT_ZERO_POINT = ".scale", ".input_scale", ".input_zero_point"


@dataclass(frozen=True)
class Layer:
    """A quantised operation of a prepared graph: names of its weight and of its observers."""

    weight: str
    weight_observer: str
    input_observer: str | None  #: None where the input is not quantised


def quantise(model: nn.Module, example: torch.Tensor, batches: Iterable[torch.Tensor]) -> Weights:
    """Return the tensors of a model in INT8, with ranges calibrated on `batches`.

    A weight ``W`` [m, ...] becomes int8 ``W`` and float32 ``W.scale`` [m], with float32
    ``W.input_scale`` [] and uint8 ``W.input_zero_point`` [] for its layer's input; the rest stays
    float32. A number q of a weight stands for scale * q, of an input for scale * (q - zero_point).
    Only the shape and type of `example`, a batch of two samples, matter.
    """
    prepared = _prepare(model, example)
    with torch.no_grad():
        for batch in batches:
            prepared(batch)
    tensors = _tensors(prepared)
    for layer in _layers(prepared):
        scale, _ = _ranges_of(prepared, layer.weight_observer)
        tensors[layer.weight] = _rounded(tensors[layer.weight], scale)
        tensors[layer.weight + SCALE] = scale
        if layer.input_observer is not None:
            scale, zero = _ranges_of(prepared, layer.input_observer)
            tensors[layer.weight + INPUT_SCALE] = scale[0]
            tensors[layer.weight + INPUT_ZERO_POINT] = zero[0].to(torch.uint8)
    return tensors


def restore(model: nn.Module, example: torch.Tensor, tensors: Weights) -> nn.Module:
    """Return the quantised network of `tensors`, the result of `quantise`.

    The model has the same architecture as the quantised one, and any weights.

    Raises
    ------
    KeyError
        If a tensor is missing.
    """
    prepared = _prepare(model, example)
    tensors = {name: value.to(example.device) for name, value in tensors.items()}
    values = {name: tensors[name] for name in _tensors(prepared)}
    for layer in _layers(prepared):
        scale = tensors[layer.weight + SCALE]
        weight = values[layer.weight]
        values[layer.weight] = weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
        _fix(prepared, layer.weight_observer, scale, torch.zeros_like(scale, dtype=torch.int64))
        if layer.input_observer is not None:
            fixed = (tensors[layer.weight + kind] for kind in (INPUT_SCALE, INPUT_ZERO_POINT))
            _fix(prepared, layer.input_observer, *fixed)
    for name, value in values.items():
        _attribute(prepared, name).data.copy_(value)
    converted = convert_pt2e(prepared)
    # The graph is for inference, so `eval` has nothing to change. An exported module refuses
    # `eval`, and torchao's version would spend seconds searching the graph for dropout.
    return GraphModule(converted, converted.graph)


def ranges(tensors: Weights) -> int:
    """Return the number of inputs with calibrated ranges."""
    return sum(name.endswith(INPUT_SCALE) for name in tensors)


# --- graphs ---------------------------------------------------------------------------------------


class _Annotator(Quantizer):  # type: ignore[misc]
    """Marks for torchao the weights and inputs to quantise."""

    def annotate(self, model: GraphModule) -> GraphModule:
        input_specification, weight_specification = _specifications()
        for node in model.graph.nodes:
            if node.target in _POSITIONS:
                read, weight = _POSITIONS[node.target]
                specifications = {node.args[weight]: weight_specification}
                if read is not None:
                    specifications[node.args[read]] = input_specification
                node.meta[_ANNOTATION] = QuantizationAnnotation(input_qspec_map=specifications)
        return model

    def validate(self, model: GraphModule) -> None:
        pass


class _Fixed(ObserverBase):  # type: ignore[misc]
    """An observer's replacement with a fixed range."""

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


def _specifications() -> tuple[QuantizationSpec, QuantizationSpec]:
    """Return the specifications of inputs and of weights."""
    return QuantizationSpec(
        dtype=torch.uint8,
        quant_min=_INPUTS[0],
        quant_max=_INPUTS[1],
        qscheme=torch.per_tensor_affine,
        observer_or_fake_quant_ctr=MinMaxObserver,
    ), QuantizationSpec(
        dtype=torch.int8,
        quant_min=_WEIGHTS[0],
        quant_max=_WEIGHTS[1],
        qscheme=torch.per_channel_symmetric,
        ch_axis=0,
        observer_or_fake_quant_ctr=PerChannelMinMaxObserver,
    )


def _prepare(model: nn.Module, example: torch.Tensor) -> GraphModule:
    """Return the graph of a model, batch normalisation folded, with observers where it rounds."""
    # Two caches of graphs' devices, which would keep all models of a worker alive.
    _assert_and_get_unique_device.cache_clear()
    assert_and_get_unique_device.cache_clear()
    model.eval()
    free = {0: Dim.AUTO} if example.dim() != 3 else {0: Dim.AUTO, 1: Dim.AUTO}  # bags
    exported = export(model, (example,), dynamic_shapes=(free,)).module(check_guards=False)
    prepared: GraphModule = prepare_pt2e(exported, _Annotator())
    return prepared


def _layers(prepared: GraphModule) -> list[Layer]:
    layers = []
    for node in prepared.graph.nodes:
        if node.target in _POSITIONS:
            read, weight = _POSITIONS[node.target]
            observers: Any = node.args
            observed = None if read is None else observers[read].target
            name = observers[weight].args[0].target
            layers.append(Layer(name, observers[weight].target, observed))
    return layers


def _tensors(prepared: GraphModule) -> Weights:
    """Return copies of the float tensors of the graph by name."""
    names = (node.target for node in prepared.graph.nodes if node.op == "get_attr")
    values = ((name, _attribute(prepared, name)) for name in names)
    return {name: value.detach().clone() for name, value in values if value.is_floating_point()}


def _attribute(module: nn.Module, name: str) -> torch.Tensor:
    """Return the tensor of a dotted name."""
    parent, _, last = name.rpartition(".")
    value: torch.Tensor = getattr(module.get_submodule(parent), last)
    return value


def _ranges_of(prepared: GraphModule, observer: str) -> tuple[torch.Tensor, torch.Tensor]:
    module: Any = prepared.get_submodule(observer)
    scale, zero = module.calculate_qparams()
    return scale, zero


def _fix(prepared: GraphModule, observer: str, scale: torch.Tensor, zero: torch.Tensor) -> None:
    parent, _, name = observer.rpartition(".")
    fixed = _Fixed(prepared.get_submodule(observer), scale, zero)
    setattr(prepared.get_submodule(parent), name, fixed)


def _rounded(weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return the int8 numbers of a weight, by torch's own operation."""
    zero = torch.zeros_like(scale, dtype=torch.int64)
    quantised = torch.ops.quantized_decomposed.quantize_per_channel
    rounded: torch.Tensor = quantised(weight, scale, zero, 0, *_WEIGHTS, torch.int8)
    return rounded
