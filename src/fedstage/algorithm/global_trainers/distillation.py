"""Distillation of an ensemble into a global model (FedEED section 4; FedSDD, Eq. 4)."""

import torch

from fedstage.settings.server import Server
from fedstage.training.losses import mean_divergence
from fedstage.training.passes import Loss


def distillation_loss(settings: Server) -> Loss:
    """Return the loss of student logits against teacher logits, both [b, classes].

    L(w) = tau^2 mean_x KL( sigma_tau(teacher), sigma_tau(f(x; w)) ), the customary form: the papers
    print the student first and no temperature, and set tau = 4. The factor tau^2 is a setting, and
    so is `sharpening`, a power s of the teacher's probabilities: sigma(s z) is sigma(z)^s,
    normalised. BKD prints KL( F(x), A(x) / tau ), which may also be read as sigma_tau of the
    teacher alone; here the temperature divides both.
    """
    tau = settings.temperature
    scale = tau**2 if settings.tau_squared else 1.0

    def loss(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        return scale * mean_divergence(teacher * (settings.sharpening / tau), student / tau)

    return loss
