"""What decides about the last bits of a result."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedstage.settings.base import Positive, Settings


class Numerics(Settings):
    """How numbers are computed; bytes are reproducible for one choice, not between choices.

    `precision` is that of convolutions and matrix products: bf16 by autocast, with weights, sums
    and losses in fp32, or tf32 of NVIDIA's GPUs. `compile` translates the loss and its gradient
    into code of their own. `cuda_graphs` records a training step once and lets the GPU repeat it.
    `logits` is how the members' logits are stored.
    """

    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    threads: Positive = 1
    precision: Literal["fp32", "bf16", "tf32"] = "fp32"
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    compile: bool = False
    cuda_graphs: bool = False
    logits: Literal["fp32", "fp16"] = "fp32"

    @model_validator(mode="after")
    def _needs_a_gpu(self) -> "Numerics":
        if self.device.startswith("cuda"):
            return self
        where = f"with device = {self.device!r}: only for device = cuda"
        if self.precision == "tf32":
            raise ValueError(f"precision = 'tf32' {where}; take fp32 or bf16")
        if self.cuda_graphs:
            raise ValueError(f"cuda_graphs = true {where}; take false")
        return self
