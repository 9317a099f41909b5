"""Models that are trained to the end without federation: each stage, its files and their inputs.

Each client trains alone, for one-shot learning or as a baseline, or there is a single model of the
pooled data or of the server's core.
"""

from functools import partial

from fedstage.errors import FedstageError
from fedstage.plan.data_files import (
    clients_samples,
    clients_table,
    common_name,
    core_file,
    data_file,
    images_of,
    info,
    initial_weights,
    scored_samples,
)
from fedstage.plan.graph import File, Folder, Stage, name_of
from fedstage.plan.inputs import (
    ClientLogitsInputs,
    LocalEvaluationInputs,
    LocalModelInputs,
    QuantisedModelInputs,
)
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.protocol.digests import canonical
from fedstage.protocol.one_shot import client_model, client_of, members, trained_on
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe
from fedstage.settings.runs import RunLength


def _label(recipe: LocalRecipe) -> str:
    return f"{common_name(recipe)}-{trained_on(recipe) or 'alone'}-seed{recipe.seed}"


FOLDER = Folder(
    "local_models",
    LocalRecipe,
    _label,
    lambda recipe: LocalRecipe.model_fields.keys() - {"quantisation"},
)


def _in_precision(part: str) -> Folder:
    """Return a folder, inside the folder of the models, for files made with a quantisation."""

    def is_precise(recipe: LocalRecipe) -> bool:
        return recipe.quantisation.name == "none"

    def label(recipe: LocalRecipe) -> str:
        models = name_of(local_models(recipe)[0])
        return f"{models}/{part}/{'fp32' if is_precise(recipe) else recipe.quantisation.name}"

    return Folder(
        FOLDER.name,
        LocalRecipe,
        label,
        identity=lambda recipe: None if is_precise(recipe) else canonical(recipe.quantisation),
        pattern=f"{{recipe}}/{part}/{{precision}}",
    )


#: A stage of models that are trained without federation.
_alone = partial(Stage, module="local_models")

# --- models ---------------------------------------------------------------------------------------


@partial(_alone, folder=FOLDER, outputs={"output": "{who}.safetensors"}, private=True)
def local_model(recipe: LocalRecipe, who: str) -> LocalModelInputs[str]:
    """Train a client, the pooled data, or the server's core, to the end."""
    return LocalModelInputs(
        data=core_file(recipe) if recipe.on_core else data_file(recipe.data, "train"),
        info=info(recipe),
        clients=None if recipe.on_core else clients_table(recipe),
        start=local_start(recipe, client_of(who)),
    )


@partial(
    _alone,
    folder=_in_precision("quantised"),
    outputs={"output": "{who}.safetensors"},
    private=True,
)
def quantised_model(recipe: LocalRecipe, who: str) -> QuantisedModelInputs[str]:
    """Quantise the model of a client, calibrated on its own samples."""
    return QuantisedModelInputs(
        **clients_samples(recipe),
        model=local_model(recipe, who),
    )


def local_start(recipe: LocalRecipe, client: int | None) -> str:
    """Return the weights that a client, or the only model (None), starts from.

    Without a `start` they are an initial model of the seed, which federated runs share.
    """
    if recipe.start is not None:
        return recipe.start
    if client is None:
        return initial_weights(recipe.data, recipe.model, recipe.seed, group=0)
    group = client if recipe.initialisation == "own" else 0
    return initial_weights(recipe.data, client_model(recipe, client), recipe.seed, group)


def _names(recipe: LocalRecipe) -> list[str]:
    """Return the names of a recipe's models."""
    who = trained_on(recipe)
    return [who] if who else [f"client_{client}" for client in range(recipe.clients)]


def local_models(recipe: LocalRecipe) -> list[File]:
    """Return one model per client, or the model of the pooled data, or of the server's core."""
    return [local_model(recipe, who) for who in _names(recipe)]


def members_models(recipe: OneShotRecipe) -> list[File]:
    """Return the models of a one-shot ensemble's members, in the order of clients."""
    models = local_models(local_recipe(recipe))
    return [models[client] for client in members(recipe)]


def models_in_precision(recipe: LocalRecipe) -> list[File]:
    """Return the models of a recipe, quantised if it has a quantisation."""
    return [_used(recipe, who) for who in _names(recipe)]


def _used(recipe: LocalRecipe, who: str) -> File:
    return (local_model if recipe.quantisation.name == "none" else quantised_model)(recipe, who)


def members_quantised(recipe: OneShotRecipe) -> list[File]:
    """Return the quantised models of a one-shot ensemble, if it has them."""
    if recipe.quantisation.name == "none":
        return []
    models = models_in_precision(local_recipe(recipe))
    return [models[client] for client in members(recipe)]


# --- logits and scores ----------------------------------------------------------------------------


#: `images` names a file of `samples_file`; for a role it has the samples of all clients.
@partial(
    _alone,
    folder=_in_precision("logits"),
    outputs={"output": "{who}-{images}.safetensors"},
    private=True,
)
def client_logits(recipe: LocalRecipe, who: str, images: str) -> ClientLogitsInputs[str]:
    """Compute the logits of a model that a client has trained to the end."""
    return ClientLogitsInputs(
        model=_used(recipe, who),
        **images_of(recipe, images),
    )


def members_logits(recipe: OneShotRecipe, images: str) -> list[File]:
    """Return the logits of a one-shot ensemble's members on images, in the order of clients."""
    local = local_recipe(recipe)
    return [client_logits(local, f"client_{client}", images) for client in members(recipe)]


#: The scores are entered under the round that they are compared with.
@partial(
    _alone,
    folder=_in_precision("metrics"),
    outputs={"output": "{who}-{role}-rounds_{rounds:04d}.parquet"},
)
def local_evaluation(
    recipe: LocalRecipe, who: str, role: str, rounds: int
) -> LocalEvaluationInputs[str]:
    """Score models that were trained without federation, with their quantisation.

    These are ``pooled`` or ``core``, a client such as ``client_0``, or the mean of ``each_client``.
    """
    names = _names(recipe)
    every = {} if trained_on(recipe) else {"each_client": names}
    scored = every | {name: [name] for name in names}
    if who not in scored:
        raise FedstageError(f"scores of {who}: no such models; use one of {', '.join(scored)}")
    return LocalEvaluationInputs(
        models=[_used(recipe, name) for name in scored[who]],
        **scored_samples(recipe, role),
    )


def local_metrics_file(recipe: LocalRecipe, length: RunLength) -> File:
    """Return the metrics of all models, as means, or of one client's."""
    client = length.evaluate_client
    who = trained_on(recipe) or "each_client" if client is None else f"client_{client}"
    return local_evaluation(recipe, who, length.role, length.rounds)
