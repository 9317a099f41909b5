"""How each reference is called with the settings of a recipe."""

from functools import partial

import torch
from reference.asynchronous import asynchronous
from reference.bkd import bkd
from reference.dfrd import dfrd
from reference.dsfl import dsfl
from reference.fedadam_fedyogi import adaptive
from reference.fedavg import fedavg
from reference.fedbe import fedbe
from reference.feddc import feddc
from reference.feddf import feddf
from reference.feddf_heterogeneous import feddf_heterogeneous
from reference.feddyn import feddyn
from reference.fedema import fedema
from reference.fedet import fedet
from reference.fedet_rounds import fedet_rounds
from reference.fedftg import fedftg, fedsdd_generated
from reference.fedgems import fedgems
from reference.fedgen import fedgen
from reference.fedgkd import fedgkd
from reference.fedgkt import fedgkt
from reference.fedgo import fedgo
from reference.fedkd import fedkd
from reference.fedlc import fedlc
from reference.fedmd import fedmd
from reference.fednova import fednova
from reference.fedntd import fedntd
from reference.fedproto import averaged, fedproto, trained
from reference.fedprox import fedprox
from reference.fedsdd import fedsdd
from reference.fens import fens
from reference.moon import moon
from reference.robust import robust
from reference.scaffold import scaffold
from reference.scarlet import scarlet
from reference.takfl import takfl
from reference_runs import CORE_ROUNDS, MELTING_EPOCH, ROUNDS

from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.algorithm.local_trainers.fedgen import draw, new_generator
from fedstage.algorithm.local_trainers.fedtgp import new_network
from fedstage.protocol.groups import client_groups
from fedstage.randomness import torch_generator


def rounds(recipe):
    return {"rounds": ROUNDS} | clients(recipe)


def clients(recipe):
    return {"epochs": recipe.client.epochs, "rate": recipe.client.learning_rate}


def server(recipe):
    return {"steps": recipe.server.steps, "server_rate": recipe.server.learning_rate}


def distilled(recipe):
    return rounds(recipe) | server(recipe) | {"tau": recipe.server.temperature}


def moments(recipe):
    chosen = recipe.aggregation.server_optimizer
    return rounds(recipe) | {
        "rule": chosen.name,
        "server_rate": chosen.learning_rate,
        "beta1": chosen.beta1,
        "beta2": chosen.beta2,
        "tau": chosen.epsilon,
    }


def momenta(recipe):
    own = {"momentum": recipe.client.momentum}
    return rounds(recipe) | own | {"server_momentum": recipe.aggregation.server_optimizer.beta}


def asynchronously(recipe):
    chosen = recipe.aggregation
    return rounds(recipe) | {
        "mu": getattr(recipe.local, "mu", 0.0),
        "exponent": getattr(chosen.discount, "exponent", 0.0),
        "server_rate": chosen.learning_rate,
        "uniform": chosen.weights == "uniform",
        "changes": chosen.stale == "changes",
    }


def sampled(recipe):
    cyclical, chosen = recipe.server.schedule, recipe.ensemble
    drawn = {"distribution": chosen.distribution, "draws": chosen.samples}
    cycle = {"cycle": cyclical.cycle, "final": cyclical.final}
    return rounds(recipe) | server(recipe) | drawn | cycle


def several(recipe):
    kind = recipe.global_trainer
    basic = {"basic": kind.name == "basic", "warm_up": kind.warm_up}
    own = {"groups": recipe.global_models, "checkpoints": recipe.ensemble.checkpoints}
    return distilled(recipe) | own | basic


def mixed(recipe):
    own = {"architectures": len(client_groups(recipe)), "server": recipe.server_model}
    return distilled(recipe) | own


def served(recipe):
    chosen = recipe.distillation
    assert recipe.ensemble.weights == chosen.weights, "of the consensus and of dissenters"
    assert recipe.ensemble.average == "probabilities"
    return (
        rounds(recipe)
        | server(recipe)
        | {
            "architectures": len(client_groups(recipe)),
            "diversity": chosen.diversity,
            "confident": chosen.weights == "confidence",
            "over_dissenters": chosen.normalised_over == "dissenters",
            "heads": recipe.head_sharing,
        }
    )


def of_history(recipe):
    chosen = recipe.local
    assert recipe.aggregation.weights == "uniform"
    return rounds(recipe) | {
        "gamma": chosen.gamma,
        "models": chosen.models,
        "tau": chosen.temperature,
        "voting": chosen.teacher == "vote",
    }


def kept(recipe):
    """Also the package's draws of a round's public samples, which both must use."""
    cache = recipe.local.cache
    assert (recipe.server.temperature, recipe.server.tau_squared) == (1.0, False)
    return (
        rounds(recipe)
        | server(recipe)
        | {
            "power": recipe.server.sharpening,
            "duration": cache.duration,
            "drawn": partial(samples_of, recipe),
        }
    )


def of_generator(recipe):
    chosen = recipe.generator
    assert recipe.server.tau_squared
    return distilled(recipe) | {
        "each": chosen.student_steps,
        "passes": chosen.steps,
        "generator_rate": chosen.learning_rate,
        "width": chosen.width,
        "c": chosen.classification,
        "d": chosen.diversity,
        "released": chosen.name == "fedftg_as_released",
    }


def of_odds(recipe):
    chosen, judge = recipe.ensemble.generator, recipe.ensemble.discriminator
    assert recipe.ensemble.average == "probabilities"
    assert chosen.beta1 == judge.beta1
    return distilled(recipe) | {
        "latent": chosen.latent,
        "width": chosen.width,
        "judge_width": judge.width,
        "generator_rate": chosen.learning_rate,
        "judge_rate": judge.learning_rate,
        "beta1": chosen.beta1,
    }


def of_features(recipe):
    """Also a generator's first weights, and the package's draws of its batches."""
    chosen, seed = recipe.local, recipe.seed

    def drawn(round_, counts):
        random = torch_generator(seed, "aggregation", round_, "shared", "features")
        held = torch.tensor(counts)
        each = (held, chosen.latent, chosen.batch_size, random)
        return [draw(*each) for _ in range(chosen.steps)]

    def drawn_by_clients(round_, client, counts, sizes):
        if counts is None:
            return [(None, None)] * len(sizes)
        random = torch_generator(seed, "local_training", round_, client, "objective")
        return [draw(torch.tensor(counts), chosen.latent, size, random) for size in sizes]

    first = new_generator(chosen, 10, recipe.model.head.width, (seed, "aggregation", 1, "shared"))
    return rounds(recipe) | {
        "weight": chosen.weight,
        "generator_rate": chosen.learning_rate,
        "first": [one.detach() for one in first.parameters()],
        "drawn": drawn,
        "drawn_by_clients": drawn_by_clients,
    }


def of_prototypes(recipe):
    chosen = recipe.local
    if chosen.name == "fedproto":
        server = averaged
    else:
        width = recipe.architectures[0].head.width
        first = new_network(10, width, (recipe.seed, "aggregation", 1, "shared"))
        first = [one.detach() for one in first.parameters()]
        how = {"steps": chosen.steps, "rate": chosen.learning_rate, "tau": chosen.margin}
        server = trained(first, **how)
    return rounds(recipe) | {"weight": chosen.weight, "server": server}


def by_rule(recipe):
    rule = recipe.aggregation.rule
    numbers = {key: getattr(rule, key, None) for key in ("trimmed", "faulty", "selected")}
    return rounds(recipe) | {"rule": rule.name} | numbers


def of_core(recipe):
    chosen, average = recipe.server.buffer, recipe.server.moving_average
    assert recipe.server.labels == 1.0
    return (
        rounds(recipe)
        | {
            "core_epochs": CORE_ROUNDS * recipe.client.epochs,
            "core_rate": recipe.client.learning_rate,
            "steps": recipe.server.steps,
            "epoch": MELTING_EPOCH,
            "server_rate": recipe.server.learning_rate,
            "tau": recipe.server.temperature,
            "beta": chosen.weight if chosen else 0.0,
            "first_buffered": 1 + chosen.after if chosen else 1,
            "melting": chosen is not None and chosen.refresh == "epoch",
            "decay": average and average.decay,
        }
    )  # fmt: skip


def aggregated(recipe):
    chosen, training = recipe.aggregator, recipe.aggregator_training
    known = clients(recipe) | {"rule": chosen.name}
    if not chosen.trained:
        return known
    return known | {
        "hidden": getattr(chosen, "hidden", None),
        "rounds": training.rounds,
        "steps": training.steps,
        "client_rate": training.learning_rate,
        "server_rate": training.server_optimizer.learning_rate,
    }


#: From the draws of a world, a recipe, and perhaps more to the global models after the last round.
FEDERATED = {
    "fedavg": lambda world, recipe: [fedavg(world, **rounds(recipe))],
    "fedprox": lambda world, recipe: [fedprox(world, **rounds(recipe), mu=recipe.local.mu)],
    "scaffold": lambda world, recipe: [scaffold(world, **rounds(recipe))[0]],
    "feddyn": lambda world, recipe: [feddyn(world, **rounds(recipe), alpha=recipe.local.alpha)],
    "feddc": lambda world, recipe: [feddc(world, **rounds(recipe), alpha=recipe.local.alpha)],
    "fedadam": lambda world, recipe: [adaptive(world, **moments(recipe))],
    "fednova": lambda world, recipe: [fednova(world, **momenta(recipe))],
    "moon": lambda world, recipe: [
        moon(world, **rounds(recipe), mu=recipe.local.mu, temperature=recipe.local.temperature)
    ],
    "fedntd": lambda world, recipe: [
        fedntd(world, **rounds(recipe), beta=recipe.local.beta, tau=recipe.local.temperature)
    ],
    "fedlc": lambda world, recipe: [fedlc(world, **rounds(recipe), tau=recipe.local.tau)],
    "fedgkd": lambda world, recipe: [fedgkd(world, **of_history(recipe))],
    "fedavg_median": lambda world, recipe: [robust(world, **by_rule(recipe))],
    "fedavg_stale": lambda world, recipe: [asynchronous(world, **asynchronously(recipe))],
    "fedgen": lambda world, recipe: [fedgen(world, **of_features(recipe))],
    "feddf": lambda world, recipe: [feddf(world, **distilled(recipe))],
    "fedgo": lambda world, recipe, **known: [fedgo(world, **of_odds(recipe), **known)[0]],
    "fedbe_gaussian": lambda world, recipe, **known: [fedbe(world, **sampled(recipe), **known)],
    "fedftg": lambda world, recipe, **known: [fedftg(world, **of_generator(recipe), **known)[0]],
    "dfrd": lambda world, recipe, **known: [
        dfrd(
            world,
            **{key: value for key, value in of_generator(recipe).items() if key != "released"},
            beta=recipe.generator.transferability,
            alpha=recipe.generator.recall,
            decay=recipe.generator.decay,
            **known,
        )
    ],
    "fedsdd_generated": lambda world, recipe, **known: fedsdd_generated(
        world,
        groups=recipe.global_models,
        checkpoints=recipe.ensemble.checkpoints,
        **of_generator(recipe),
        **known,
    ),
    "fedsdd": lambda world, recipe: fedsdd(world, **several(recipe)),
    "feddf_server": lambda world, recipe: feddf_heterogeneous(world, **mixed(recipe)),
    "takfl": lambda world, recipe: takfl(
        world,
        **distilled(recipe),
        architectures=recipe.global_models,
        gamma=recipe.server.buffer.weight,
        parts=recipe.server.task_arithmetic.parts,
    ),
    "fedema_distill": lambda world, recipe: [
        fedema(
            world,
            **distilled(recipe),
            decay=recipe.server.moving_average.decay,
            median=recipe.ensemble.average == "median",
        )
    ],
    "kd": lambda world, recipe: [bkd(world, **of_core(recipe))],
    "fedet": lambda world, recipe: fedet_rounds(world, **served(recipe)),
}
for variant in ("fedavg_trimmed_mean", "krum", "multi_krum"):
    FEDERATED[variant] = FEDERATED["fedavg_median"]
FEDERATED["feddf_heterogeneous"] = FEDERATED["feddf_server"]
for variant in ("uniform", "without_heads", "over_dissenters"):
    FEDERATED[f"fedet_{variant}"] = FEDERATED["fedet"]
FEDERATED["fedftg_as_released"] = FEDERATED["fedftg"]
FEDERATED["fedema_distill_median"] = FEDERATED["fedema_distill"]
FEDERATED["fedgkd_last"] = FEDERATED["fedgkd_vote"] = FEDERATED["fedgkd"]
FEDERATED["fedasync"] = FEDERATED["fedbuff"] = FEDERATED["fedavg_stale"]
FEDERATED["fedyogi"] = FEDERATED["fedadam"]
FEDERATED["fedbe_dirichlet"] = FEDERATED["fedbe_gaussian"]
for variant in ("bkd", "melting", "ema", "bkd_of_two"):
    FEDERATED[variant] = FEDERATED["kd"]
FEDERATED["fedsdd_r2"] = FEDERATED["basic"] = FEDERATED["fedsdd"]

#: To the models that are scored, and those of the clients, by number.
EXCHANGING = {
    "dsfl": lambda world, recipe: first_scored(
        dsfl(world, **rounds(recipe), **server(recipe), temperature=recipe.distillation.temperature)
    ),
    "scarlet": lambda world, recipe: first_scored(scarlet(world, **kept(recipe))),
    "fedgems": lambda world, recipe: first_scored(
        fedgems(world, **rounds(recipe), **server(recipe), epsilon=recipe.distillation.epsilon)
    ),
    "fedmd": lambda world, recipe: fedmd(world, **rounds(recipe), **server(recipe)),
    "fedproto": lambda world, recipe: fedproto(world, **of_prototypes(recipe)),
}

EXCHANGING["fedtgp"] = EXCHANGING["fedproto"]

#: To the server's model, those of the clients, by number, and who took part in the last round.
SPLITTING = {
    "fedgkt": lambda world, recipe: fedgkt(
        world,
        **rounds(recipe),
        **server(recipe),
        alpha=recipe.local.alpha,
        temperature=recipe.local.temperature,
    ),
}

#: To a student.
STUDENTS = {
    "fedkd": lambda world, recipe: fedkd(world, **clients(recipe), **server(recipe)),
    "fedet_os": lambda world, recipe: fedet(
        world, **clients(recipe), **server(recipe), diversity=recipe.distillation.diversity
    ),
}


def first_scored(models):
    server, own = models
    return [server], own


def ensemble(world, recipe, **known):
    """Return clients' models, lambda, and predictions."""
    return fens(world, **aggregated(recipe), **known)
