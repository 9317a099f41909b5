"""FedAvg: plain training (McMahan et al. 2017; FedSDD, Eq. 2, gives the average over a group)."""

from fedstage.algorithm.local_trainers import LocalTrainer
from fedstage.settings.local_training import FedAvg


class Trainer(LocalTrainer[FedAvg]):
    """Clients minimise the loss of their logits and send their weights."""
