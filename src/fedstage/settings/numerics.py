"""Settings that determine the last bits of a result."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from fedstage.settings.base import DEVICE, Positive, Settings


class Numerics(Settings):
    """How numbers are computed; results are the same byte for byte only for the same choice."""

    device: Annotated[str, Field(pattern=DEVICE)] = "auto"
    """Device on which models are trained; ``auto`` takes a GPU if there is one."""
    threads: Positive = 1
    """Number of threads of a job on the CPU."""
    precision: Literal["fp32", "bf16", "tf32"] = "fp32"
    """Precision of convolutions and matrix products: fp32; bf16 by autocast, with weights, sums and
    losses in fp32; or tf32 on NVIDIA GPUs.
    """
    memory_format: Literal["contiguous", "channels_last"] = "contiguous"
    """Memory layout of images."""
    cuda_graphs: bool = False
    """Whether to record a training step once and let the GPU replay it."""

    def _faults(self) -> Iterator[str]:
        for key, allowed in (("precision", ("fp32", "bf16")), ("cuda_graphs", (False,))):
            if (value := getattr(self, key)) not in allowed and not self.device.startswith("cuda"):
                yield f"{key} = {str(value).lower()}: only for device = cuda, not {self.device}"
