"""FedGen (Zhu et al. 2021): FedAvg whose clients also learn from generated features.

    generator   min CE( sum_n p_n h_n(G(e, y)), y )        h_n: n's classifier, p_n by samples
    client      CE(f(x), y) + lambda CE( h(G(e, y')), y' )        e ~ U(0, 1)
    G(e, y) = W_2 relu( norm(W_1 [e, y] + b_1) ) + b_2,    norm: of a batch

y and y' are drawn by the participants' label counts. As in public implementations, without the
paper's divergence between clients' predictions, decay of lambda and penalty on similar features.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, one_hot

from fedstage.algorithm.exchange.updates import Update, part
from fedstage.algorithm.local_trainers import LocalTrainer, Task, Trained
from fedstage.models.heads import HEAD
from fedstage.models.loading import state_of
from fedstage.randomness import Key, drawing_from, torch_generator
from fedstage.settings.local_training import FedGen
from fedstage.training.passes import ModelLoss, forward
from fedstage.weights import Tensors, Weights

_CLASSIFIER = f"{HEAD}.classifier"
_GENERATOR, _COUNTS = "server/generator/", "server/counts"


class Trainer(LocalTrainer[FedGen]):
    """FedAvg with a generator of features."""

    def objective(self, task: Task) -> ModelLoss | None:
        """Return the client's loss; None without a generator, in the first round."""
        settings, weights = self.settings, part(task.state, _GENERATOR)
        if not weights or not settings.weight:
            return None
        width = task.model.get_submodule(_CLASSIFIER).get_parameter("weight").shape[1]
        network = new_generator(settings, task.classes, width, ("filled",)).to(task.labels.device)
        network.load_state_dict(weights)
        network.requires_grad_(False)
        counts = task.state[_COUNTS].cpu()

        def of_model(model: nn.Module, pixels: Tensor, labels: Tensor) -> Tensor:
            size = max(len(labels), 2)  # which a batch must have to be normalised
            drawn, given = draw(counts, settings.latent, size, task.generator)
            drawn, given = drawn.to(labels.device), given.to(labels.device)
            said = model.get_submodule(_CLASSIFIER)(network(drawn))
            own = task.loss(forward(model, pixels, task.numerics), labels)
            return own + settings.weight * cross_entropy(said.float(), given)

        return of_model

    def payload(self, trained: Trained, state: Tensors, client: int) -> Weights:
        """Return the client's samples of each class, [classes]."""
        classes = len(trained.end[f"{_CLASSIFIER}.bias"])
        return {"counts": torch.bincount(trained.labels, minlength=classes)}

    def sent_down(self, start: Tensors, state: Tensors) -> Tensors:
        """Return the generator and the label counts."""
        return part(state, "server/")

    def shared(self, state: Tensors, updates: Sequence[Update], key: tuple[Key, ...]) -> Tensors:
        """Return the generator after its steps, and the participants' label counts."""
        settings = self.settings
        counts = torch.stack([update.payload["counts"] for update in updates])
        heads = [part(update.weights, f"{_CLASSIFIER}.") for update in updates]
        shares = counts.sum(1) / counts.sum()
        weight, bias = (
            sum(share * head[name] for share, head in zip(shares, heads, strict=True))
            for name in ("weight", "bias")
        )
        network = new_generator(settings, counts.shape[1], weight.shape[1], key)
        if before := part(state, _GENERATOR):
            network.load_state_dict(before)
        adam = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        random = torch_generator(*key, "features")
        for _ in range(settings.steps):
            drawn, labels = draw(counts.sum(0), settings.latent, settings.batch_size, random)
            loss = cross_entropy(linear(network(drawn), weight, bias), labels)
            adam.zero_grad()
            loss.backward()
            adam.step()
        kept = {f"{_GENERATOR}{name}": value for name, value in state_of(network).items()}
        return {_COUNTS: counts.sum(0), **kept}


def new_generator(
    settings: FedGen, classes: int, width: int, key: tuple[Key, ...]
) -> nn.Sequential:
    """Return G, which maps e and y in one vector to features, with torch's initial weights."""
    with drawing_from(*key):
        return nn.Sequential(
            nn.Linear(settings.latent + classes, settings.hidden),
            nn.BatchNorm1d(settings.hidden, track_running_stats=False),
            nn.ReLU(),
            nn.Linear(settings.hidden, width),
        )


def draw(
    counts: Tensor, latent: int, size: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return e and y as G takes them, [size, latent + classes], and y by label counts, [size]."""
    labels = torch.multinomial(counts.double(), size, replacement=True, generator=generator)
    noise = torch.rand(size, latent, generator=generator)
    return torch.cat([noise, one_hot(labels, len(counts)).float()], 1), labels
