"""Methods against the plain implementations in `reference`, which know nothing of the package.

From the artefacts of a real run (partition, participants, initial weights) a reference must end in
the run's weights after three rounds. There each client and each distillation takes all of its
samples in every step, so that no order of batches has to be known, or is given the package's
batches. From draws of its own it must be as accurate, over eight seeds, as the package.
"""

import ast
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest
import torch
from reference.drawing import Drawn
from reference.fafi import fafi
from reference.fedgo import fedgo
from reference.fedov import fedov
from reference.scaffold import scaffold
from reference_calls import (
    EXCHANGING,
    FEDERATED,
    SPLITTING,
    STUDENTS,
    ensemble,
    of_odds,
    rounds,
)
from reference_runs import (
    ALL,
    BATCH,
    CLIENTS,
    COMPARED,
    CONFIG,
    MELTING_EPOCH,
    PARTICIPANTS,
    ROUNDS,
    RULES,
    SEEDS,
    UNKNOWN,
    make,
    networks_of,
)
from scipy import stats

from fedstage.algorithm.global_trainers.data_free import new_generator
from fedstage.algorithm.one_shot.outliers import outliers
from fedstage.models.image_generator import new_discriminator, new_image_generator
from fedstage.plan import data_files, training_folder, unfederated
from fedstage.plan import one_shot as shot
from fedstage.plan.data_files import public_id
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.plan.training import aggregation, global_model, logits
from fedstage.protocol.groups import client_groups
from fedstage.randomness import torch_generator
from fedstage.training.batches import client_batches, public_batches
from fedstage.training.images import view

pytestmark = pytest.mark.workflow

CLOSE = 1e-6
LEVEL = 0.001  # of Welch's t-test


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("exact"))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return make(tmp_path_factory.mktemp("drawn"), CONFIG | {"targets": ["drawn"]})


def largest_difference(model, weights):
    own = model.state_dict()
    assert own.keys() == weights.keys()
    return max(float((own[name] - weights[name]).abs().max()) for name in own)


def known_batches(recipe):
    """Return a function that gives the package's batches, None where these are all samples."""
    return partial(drawn_batches, recipe) if recipe.client.batch_size < ALL else None


def drawn_batches(recipe, round_, client, samples):
    key = (recipe.seed, "local_training", round_, client, "batches")
    return client_batches(samples, recipe.client, torch_generator(*key))


def drawn_of_core(recipe, round_, samples):
    """Return the package's batches of a distillation on the server's own images."""
    key = (recipe.seed, "distillation", round_, 0, "batches")
    size = recipe.server.batch_size
    assert samples // size == MELTING_EPOCH
    steps = recipe.server.epochs * MELTING_EPOCH
    return public_batches(samples, size, steps, torch_generator(*key))


def said_by_drawn(made, recipe, round_):
    """Return what the models that the package has drawn say about the public images."""
    kind = f"{recipe.ensemble.distribution}_{recipe.ensemble.samples}"
    path = logits(recipe, round_, 0, kind, public_id(recipe))
    return made.tensors(path)["logits"]


def drawn_of_generator(recipe):
    """Return a generator's first weights, and the package's draws of a round's batches."""
    info = {"shape": [1, 8, 8], "classes": 10}
    first = list(new_generator(recipe.generator, info, recipe.seed, 0).state_dict().values())

    def drawn(round_, counts):
        key = (recipe.seed, "distillation", round_, 0)
        of_labels, of_latent = (torch_generator(*key, part) for part in ("labels", "latent"))
        held = torch.tensor(counts).sum(0).double()
        size = recipe.server.batch_size
        batches = -(-recipe.server.steps // recipe.generator.student_steps)
        return [
            (
                torch.randn(size, recipe.generator.latent, generator=of_latent),
                torch.multinomial(held, size, replacement=True, generator=of_labels),
            )
            for _ in range(batches)
        ]

    return {"first": first, "drawn": drawn}


def drawn_of_discriminators(recipe):
    """Return first weights of a generator and discriminators, and the package's batches and z."""
    shape, chosen, judge = (1, 8, 8), recipe.ensemble.generator, recipe.ensemble.discriminator
    server, theirs = (recipe.seed, "public_generator"), (recipe.seed, "client_discriminator")
    random = torch_generator(*server, "weights")
    networks = {
        "generator": new_image_generator(shape, chosen.latent, chosen.width, random),
        "judge": new_discriminator(shape, chosen.width, random),
        "clients": new_discriminator(shape, judge.width, torch_generator(*theirs, "weights")),
    }

    def drawn(client, samples):
        key = server if client is None else (*theirs, client)
        of_batches, of_latent = (torch_generator(*key, part) for part in ("batches", "latent"))
        if client is None:
            batches = public_batches(samples, chosen.batch_size, chosen.steps, of_batches)
        else:
            size = {"epochs": judge.epochs, "batch_size": judge.batch_size, "last_batch": "keep"}
            own = recipe.client.model_copy(update=size)
            batches = client_batches(samples, own, of_batches)
        return [
            (batch, torch.randn(len(batch), chosen.latent, generator=of_latent))
            for batch in batches
        ]

    first = {name: list(one.state_dict().values()) for name, one in networks.items()}
    return {"first": first, "drawn": drawn}


@pytest.mark.parametrize("method", FEDERATED)
def test_rounds_end_in_the_same_weights(made, method):
    recipe, known = made.recipe(method), {}
    if method.startswith("fedbe"):
        known["said_by_drawn"] = partial(said_by_drawn, made, recipe)
    if recipe.generator is not None:
        known = drawn_of_generator(recipe)
    if method == "fedgo":
        known = drawn_of_discriminators(recipe)
    of_core = partial(drawn_of_core, recipe) if method == "melting" else None
    world = made.recorded(recipe, known_batches(recipe), of_core)
    models = FEDERATED[method](world, recipe, **known)
    assert len(models) == recipe.global_models
    for group, model in enumerate(models):
        weights = made.tensors(global_model(recipe, ROUNDS, group))
        assert largest_difference(model, weights) <= CLOSE


def test_odds_of_discriminators_are_the_same(made):
    recipe = made.recipe("fedgo")
    known = of_odds(recipe) | drawn_of_discriminators(recipe)
    _, generator, odds = fedgo(made.recorded(recipe), **known)
    chosen, theirs = (
        recipe.ensemble.generator,
        made.tensors(training_folder.public_generator(recipe)),
    )
    names = new_image_generator((1, 8, 8), chosen.latent, chosen.width, torch_generator(0))
    for name, own in zip(names.state_dict(), generator.state_dict().values(), strict=True):
        torch.testing.assert_close(own, theirs[name], rtol=0, atol=CLOSE)
    (path,) = training_folder.odds_files(recipe)
    assert float(odds.std()) > 0.1
    torch.testing.assert_close(odds.float(), made.tensors(path)["log_odds"], rtol=0, atol=1e-5)


def test_variates_are_the_same(made):
    recipe = made.recipe("scaffold")
    world = made.recorded(recipe, known_batches(recipe))
    model, server = scaffold(world, **rounds(recipe))
    state = made.tensors(aggregation(recipe, ROUNDS, 0, output="new_state"))
    for (name, _), variate in zip(model.named_parameters(), server, strict=True):
        torch.testing.assert_close(variate, state[f"server/{name}"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("method", EXCHANGING)
def test_clients_that_exchange_logits_end_in_the_same_weights(made, method):
    recipe = made.recipe(method)
    world = made.recorded(recipe)
    scored, own = EXCHANGING[method](world, recipe)
    if recipe.server_model:
        weights = made.tensors(global_model(recipe, ROUNDS, 0))
        assert largest_difference(scored[0], weights) <= CLOSE
    compare_with_kept(made, recipe, world, own)
    (run,) = made.runs("exact", method)
    accuracies = [world.accuracy(model(world.test_images)) for model in scored]
    assert fmean(accuracies) == pytest.approx(made.accuracy(run))


@pytest.mark.parametrize("method", SPLITTING)
def test_clients_that_exchange_features_end_in_the_same_weights(made, method):
    recipe = made.recipe(method)
    world = made.recorded(recipe)
    server, own, last = SPLITTING[method](world, recipe)
    weights = made.tensors(global_model(recipe, ROUNDS, 0))
    assert largest_difference(server, weights) <= CLOSE
    compare_with_kept(made, recipe, world, own)
    assert {world.group(client) for client in own} == {0, 1}
    assert len(own) > len(last)
    (run,) = made.runs("exact", method)
    with torch.no_grad():
        said = [server(own[client].eval().body(world.test_images)) for client in last]
    assert fmean(map(world.accuracy, said)) == pytest.approx(made.accuracy(run))


def compare_with_kept(made, recipe, world, own):
    """Compare clients' models, by number, with those that the last round's states hold."""
    states = [
        made.tensors(aggregation(recipe, ROUNDS, group, output="new_state"))
        for group in client_groups(recipe)
    ]
    names = [name for state in states for name in state if name.startswith("client/")]
    kept = {name.split("/")[1] for name in names}
    assert kept == {str(client) for client in own}
    for client, model in own.items():
        state = states[world.group(client)]
        prefix = f"client/{client}/"
        weights = {
            name.removeprefix(prefix): value
            for name, value in state.items()
            if name.startswith(prefix)
        }
        assert largest_difference(model, weights) <= CLOSE


def test_clients_of_both_architectures_take_part_but_not_in_every_round(made):
    """Else there would be nothing to see of groups without participants, or of absent clients."""
    recipe = made.recipe("fedet")
    world = made.recorded(recipe)
    rounds = [world.participants(t) for t in range(1, ROUNDS + 1)]
    groups = [{world.group(client) for client in clients} for clients in rounds]
    assert {0, 1} in groups
    assert any(len(present) == 1 for present in groups)
    assert any(set(rounds[0]) != set(other) for other in rounds)
    assert all(made.recipe(method).participants == 3 for method in ("dsfl", "fedmd"))


@pytest.mark.parametrize("method", RULES)
def test_one_shot_ensembles_are_the_same(made, method):
    recipe, known = made.recipe(method), {}
    if method == "fens_mlp":
        before = made.tensors(shot.aggregator(made.recipe("mlp_before")))
        known["start"] = list(before.values())
    world = made.recorded(recipe)
    models, learnt, predicted = ensemble(world, recipe, **known)
    paths = unfederated.local_models(local_recipe(recipe))
    for model, path in zip(models, paths, strict=True):
        assert largest_difference(model, made.tensors(path)) <= CLOSE
    theirs = made.tensors(shot.aggregator(recipe))
    theirs.pop("log_prior", None)  # of voting, uniform
    mine = learnt if theirs else []
    for one, other in zip(mine, theirs.values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=CLOSE)
    (run,) = made.runs("exact", method)
    assert world.accuracy(predicted) == pytest.approx(made.accuracy(run))


def destroyed(recipe):
    """Return a function of a client's step and images that gives what the package has drawn."""
    generators = {}

    def draws(client, step, images):
        key = (recipe.seed, "local_model", client, "outliers")
        generator = generators.setdefault(client, torch_generator(*key))
        made = outliers(recipe.unknown.outliers, images, generator)
        share = float(torch.rand((), generator=generator))
        return made, share, torch.randperm(len(images), generator=generator)

    return draws


@pytest.mark.parametrize("method", UNKNOWN)
def test_clients_that_learn_what_they_do_not_know_are_the_same(made, method):
    recipe = made.recipe(method)

    def batches(round_, client, samples):  # whose order says which image is destroyed how
        key = (recipe.seed, "local_model", client, "batches")
        return client_batches(samples, recipe.client, torch_generator(*key))

    world, own = made.recorded(recipe, batches), recipe.unknown
    models, predicted = fedov(
        world,
        destroyed(recipe),
        epochs=recipe.client.epochs,
        rate=recipe.client.learning_rate,
        steps=own.attack.steps if own.attack else 0,
        step=own.attack.step / float(world.deviation) if own.attack else 0.0,
        second=own.second,
        mixed=own.mixed,
    )
    paths = unfederated.local_models(local_recipe(recipe))
    for model, path in zip(models, paths, strict=True):
        assert largest_difference(model, made.tensors(path)) <= CLOSE
    (run,) = made.runs("exact", method)
    assert world.accuracy(predicted) == pytest.approx(made.accuracy(run))


def seen_views(recipe, world):
    """Return a function of a client's images that gives the views which the package has drawn."""
    generators = {}

    def views(client, images):
        key = (recipe.seed, "local_model", client, "views")
        generator = generators.setdefault(client, torch_generator(*key))
        pixels = images * world.deviation + world.mean
        return [(view(pixels, generator) - world.mean) / world.deviation for _ in range(2)]

    return views


@pytest.mark.slow
def test_clients_that_learn_prototypes_are_the_same(made):
    recipe = made.recipe("fafi")

    def batches(round_, client, samples):  # whose order decides nothing here
        key = (recipe.seed, "local_model", client, "batches")
        return client_batches(samples, recipe.client, torch_generator(*key))

    world, own = made.recorded(recipe, batches), recipe.prototypes
    models, predicted = fafi(
        world,
        seen_views(recipe, world),
        epochs=recipe.client.epochs,
        rate=recipe.client.learning_rate,
        near=own.near,
        apart=own.apart,
        alike=own.alike,
        tau=own.temperature,
        longest=recipe.client.clip_norm,
    )
    paths = unfederated.local_models(local_recipe(recipe))
    for model, path in zip(models, paths, strict=True):
        assert largest_difference(model, made.tensors(path)) <= CLOSE
    (run,) = made.runs("exact", "fafi")
    assert world.accuracy(predicted) == pytest.approx(made.accuracy(run))


@pytest.mark.parametrize("method", STUDENTS)
def test_one_shot_students_are_the_same(made, method):
    recipe = made.recipe(method)
    student = STUDENTS[method](made.recorded(recipe), recipe)
    weights = made.tensors(shot.student_file(recipe))
    assert largest_difference(student, weights) <= CLOSE


def clients_groups(recipe):
    """Return how many groups there are of which each client is in one."""
    return len(client_groups(recipe)) if getattr(recipe, "client_groups", "") == "drawn" else 1


def own_accuracy(made, method, recipe):
    """Return a reference's accuracy from draws of its own, keyed by the seed of the recipe."""
    world = Drawn(
        networks_of(recipe),
        made.folder / Path(data_files.data_file(recipe.data, "train")).parent,
        recipe.seed,
        clients=CLIENTS,
        participants=getattr(recipe, "participants", PARTICIPANTS),
        alpha=recipe.partition.alpha,
        least=recipe.partition.min_samples,
        batch=BATCH,
        for_aggregator=getattr(recipe, "aggregator_fraction", 0.0),
        groups=clients_groups(recipe),
    )
    if method in EXCHANGING:
        scored, _ = EXCHANGING[method](world, recipe)
        return fmean(world.accuracy(model(world.test_images)) for model in scored)
    if method in FEDERATED:
        return world.accuracy(FEDERATED[method](world, recipe)[0](world.test_images))
    if method in STUDENTS:
        return world.accuracy(STUDENTS[method](world, recipe)(world.test_images))
    return world.accuracy(ensemble(world, recipe)[2])


@pytest.mark.slow
@pytest.mark.parametrize("method", COMPARED)
def test_own_draws_are_as_accurate(drawn, method):
    runs = drawn.runs("drawn", method)
    assert len(runs) == SEEDS
    theirs = [drawn.accuracy(run) for run in runs]
    own = [own_accuracy(drawn, method, run.candidates[0].parts[-1].recipe) for run in runs]
    p_value = stats.ttest_ind(own, theirs, equal_var=False).pvalue  # nan if all are the same
    print(f"{method}: {fmean(own):.2f} and {fmean(theirs):.2f}: p = {p_value:.3g}")
    assert not p_value < LEVEL


def test_references_know_nothing_of_the_package():
    others = {"torch", "numpy", "reference", "pyarrow", "safetensors", "copy", "itertools"}
    for path in sorted(Path(__file__).with_name("reference").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= others, path
            elif isinstance(node, ast.ImportFrom):
                assert node.module.partition(".")[0] in others, path
