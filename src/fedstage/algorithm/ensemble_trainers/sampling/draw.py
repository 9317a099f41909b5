"""The models that a Bayesian ensemble draws from a distribution over its clients' models (FedBE).

The ensemble consists of these models, the clients' models and their average, all with equal
weights. Only parameters are drawn. The running statistics of batch normalisation, which the paper
does not mention, are not, since a variance must not become negative. A model drawn from a Gaussian
has the averaged model's statistics; one drawn from a Dirichlet distribution combines the clients'
statistics as it combines their parameters.
"""

from collections.abc import Collection, Sequence

from fedstage.algorithm.ensemble_trainers.sampling import dirichlet, gaussian
from fedstage.randomness import Key, numpy_generator, torch_generator
from fedstage.settings.ensembles import Bayesian
from fedstage.weights import Tensors, Weights, renamed


def draw(
    settings: Bayesian,
    clients: Sequence[Tensors],
    weights: Sequence[float],
    aggregated: Weights,
    start: Weights | None,
    parameters: Collection[str],
    key: tuple[Key, ...],
) -> list[Weights]:
    """Draw the models of one round and group.

    Each has its own generator, so that the first 10 of 20 models are the same as 10 drawn alone.

    Parameters
    ----------
    clients, weights
        The models of the group's participants, and their weights in the aggregation.
    aggregated : dict
        w_{t,k}, for its buffers.
    start : dict, optional
        The model that the round started from, which only `as_released` reads.
    parameters : collection of str
        The names of the model's parameters.
    key : tuple
        Key of the random generators: seed, stage, round and group.
    """
    models = [renamed(client, {name: name for name in parameters}) for client in clients]

    def model(number: int) -> Weights:
        own = (*key, settings.distribution, number)
        if settings.distribution == "dirichlet":
            return dirichlet.sample(clients, settings.concentration, numpy_generator(*own))
        generator = torch_generator(*own)
        if settings.variant == "as_published":
            return aggregated | gaussian.sample(models, weights, generator)
        assert start is not None, "the graph gives it to this variant"
        return aggregated | gaussian.sample_as_released(models, start, generator)

    return [model(number) for number in range(settings.samples)]
