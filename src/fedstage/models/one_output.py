"""Two classes told by one output z: the logits are (0, z).

Their softmax is the sigmoid of z, their cross entropy -log sigmoid(z) of the second class and
-log sigmoid(-z) of the first, and the derivative by z is that of the binary cross entropy. So all
that computes with logits, such as ensembles and distillation, holds for one output as well.
"""

from torch import Tensor, nn
from torch.nn.functional import pad

from fedstage.errors import FedstageError
from fedstage.settings.models import Model


class OneOutput(nn.Module):
    """The logits of two classes, without parameters of its own."""

    def forward(self, outputs: Tensor) -> Tensor:
        """Map z [n, 1] to (0, z) [n, 2]."""
        return pad(outputs, (1, 0))


def one_output(settings: Model, classes: int) -> nn.Module:
    """Return the layer behind a model's one output.

    Raises
    ------
    FedstageError
        If there are not two classes.
    """
    if classes != 2:
        raise FedstageError(
            f"model = {settings.name}: outputs = 1: only for 2 classes, and the data has {classes}"
        )
    return OneOutput()
