"""How each reference is called with the settings of a line."""

from functools import partial

from reference.asynchronous import asynchronous
from reference.bkd import bkd
from reference.dsfl import dsfl
from reference.fedadam_fedyogi import adaptive
from reference.fedavg import fedavg
from reference.fedbe import fedbe
from reference.feddf import feddf
from reference.feddf_heterogeneous import feddf_heterogeneous
from reference.fedet import fedet
from reference.fedet_rounds import fedet_rounds
from reference.fedftg import fedftg
from reference.fedgems import fedgems
from reference.fedgkd import fedgkd
from reference.fedgkt import fedgkt
from reference.fedgo import fedgo
from reference.fedkd import fedkd
from reference.fedlc import fedlc
from reference.fedmd import fedmd
from reference.fednova import fednova
from reference.fedntd import fedntd
from reference.fedprox import fedprox
from reference.fedsdd import fedsdd
from reference.fens import fens
from reference.moon import moon
from reference.robust import robust
from reference.scaffold import scaffold
from reference.scarlet import scarlet
from reference_runs import CORE_ROUNDS, MELTING_EPOCH, ROUNDS

from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.settings.groups import client_groups


def rounds(line):
    return {"rounds": ROUNDS} | clients(line)


def clients(line):
    return {"epochs": line.client.epochs, "rate": line.client.learning_rate}


def server(line):
    return {"steps": line.server.steps, "server_rate": line.server.learning_rate}


def distilled(line):
    return rounds(line) | server(line) | {"tau": line.server.temperature}


def moments(line):
    chosen = line.aggregation.server_optimizer
    return rounds(line) | {
        "rule": chosen.name,
        "server_rate": chosen.learning_rate,
        "beta1": chosen.beta1,
        "beta2": chosen.beta2,
        "tau": chosen.epsilon,
    }


def momenta(line):
    own = {"momentum": line.client.momentum}
    return rounds(line) | own | {"server_momentum": line.aggregation.server_optimizer.beta}


def asynchronously(line):
    chosen = line.aggregation
    return rounds(line) | {
        "mu": getattr(line.local, "mu", 0.0),
        "exponent": getattr(chosen.discount, "exponent", 0.0),
        "server_rate": chosen.learning_rate,
        "uniform": chosen.weights == "uniform",
        "changes": chosen.stale == "changes",
    }


def sampled(line):
    cyclical, chosen = line.server.schedule, line.ensemble
    drawn = {"distribution": chosen.distribution, "draws": chosen.samples}
    cycle = {"cycle": cyclical.cycle, "final": cyclical.final}
    return rounds(line) | server(line) | drawn | cycle


def several(line):
    kind = line.global_trainer
    basic = {"basic": kind.name == "basic", "warm_up": kind.warm_up}
    own = {"groups": line.global_models, "checkpoints": line.ensemble.checkpoints}
    return distilled(line) | own | basic


def mixed(line):
    own = {"architectures": len(client_groups(line)), "server": line.server_model}
    return distilled(line) | own


def served(line):
    chosen = line.distillation
    assert line.ensemble.weights == chosen.weights, "of the consensus and of dissenters"
    assert line.ensemble.average == "probabilities"
    return (
        rounds(line)
        | server(line)
        | {
            "architectures": len(client_groups(line)),
            "diversity": chosen.diversity,
            "confident": chosen.weights == "confidence",
            "over_dissenters": chosen.normalised_over == "dissenters",
            "heads": line.head_transfer,
        }
    )


def of_history(line):
    chosen = line.local
    assert line.aggregation.weights == "uniform"
    return rounds(line) | {
        "gamma": chosen.gamma,
        "models": chosen.models,
        "tau": chosen.temperature,
        "squared": chosen.distance == "mse",
        "vote_temperature": chosen.vote_temperature if chosen.teacher == "vote" else None,
    }


def kept(line):
    """Also the package's draws of a round's public samples, which both must use."""
    cache = line.local.cache
    assert (line.server.temperature, line.server.tau_squared) == (1.0, False)
    return (
        rounds(line)
        | server(line)
        | {
            "power": line.server.sharpening,
            "duration": cache.duration,
            "forgotten": cache.expired == "forgotten",
            "drawn": partial(samples_of, line),
        }
    )


def of_generator(line):
    chosen = line.generator
    assert line.server.tau_squared
    return distilled(line) | {
        "each": chosen.student_steps,
        "passes": chosen.steps,
        "generator_rate": chosen.learning_rate,
        "width": chosen.width,
        "c": chosen.classification,
        "d": chosen.diversity,
        "released": chosen.name == "fedftg_as_released",
    }


def of_odds(line):
    chosen, judge = line.ensemble.generator, line.ensemble.discriminator
    assert line.ensemble.average == "probabilities"
    assert chosen.beta1 == judge.beta1
    return distilled(line) | {
        "latent": chosen.latent,
        "width": chosen.width,
        "judge_width": judge.width,
        "generator_rate": chosen.learning_rate,
        "judge_rate": judge.learning_rate,
        "beta1": chosen.beta1,
    }


def by_rule(line):
    rule = line.aggregation.rule
    numbers = {key: getattr(rule, key, None) for key in ("trimmed", "faulty", "selected")}
    return rounds(line) | {"rule": rule.name} | numbers


def of_core(line):
    chosen, average = line.server.buffer, line.server.moving_average
    assert line.server.labels == 1.0
    return (
        rounds(line)
        | {
            "core_epochs": CORE_ROUNDS * line.client.epochs,
            "core_rate": line.client.learning_rate,
            "steps": line.server.steps,
            "epoch": MELTING_EPOCH,
            "server_rate": line.server.learning_rate,
            "tau": line.server.temperature,
            "beta": chosen.weight if chosen else 0.0,
            "first_buffered": 1 + chosen.after if chosen else 1,
            "melting": chosen is not None and chosen.refresh == "epoch",
            "decay": average and average.decay,
        }
    )  # fmt: skip


def aggregated(line):
    chosen, training = line.aggregator, line.aggregator_training
    known = clients(line) | {"rule": chosen.name}
    if not chosen.trained:
        return known
    return known | {
        "hidden": getattr(chosen, "hidden", None),
        "rounds": training.rounds,
        "steps": training.steps,
        "client_rate": training.learning_rate,
        "server_rate": training.server_optimizer.learning_rate,
    }


#: From the draws of a world, a line, and perhaps more to the global models after the last round.
FEDERATED = {
    "fedavg": lambda world, line: [fedavg(world, **rounds(line))],
    "fedprox": lambda world, line: [fedprox(world, **rounds(line), mu=line.local.mu)],
    "scaffold": lambda world, line: [scaffold(world, **rounds(line), option=line.local.option)[0]],
    "fedadam": lambda world, line: [adaptive(world, **moments(line))],
    "fednova": lambda world, line: [fednova(world, **momenta(line))],
    "moon": lambda world, line: [
        moon(world, **rounds(line), mu=line.local.mu, temperature=line.local.temperature)
    ],
    "fedntd": lambda world, line: [
        fedntd(world, **rounds(line), beta=line.local.beta, tau=line.local.temperature)
    ],
    "fedlc": lambda world, line: [fedlc(world, **rounds(line), tau=line.local.tau)],
    "fedgkd": lambda world, line: [fedgkd(world, **of_history(line))],
    "fedavg_median": lambda world, line: [robust(world, **by_rule(line))],
    "fedavg_stale": lambda world, line: [asynchronous(world, **asynchronously(line))],
    "feddf": lambda world, line: [feddf(world, **distilled(line))],
    "fedgo": lambda world, line, **known: [fedgo(world, **of_odds(line), **known)[0]],
    "fedbe_gaussian": lambda world, line, **known: [fedbe(world, **sampled(line), **known)],
    "fedftg": lambda world, line, **known: [fedftg(world, **of_generator(line), **known)[0]],
    "fedsdd": lambda world, line: fedsdd(world, **several(line)),
    "feddf_server": lambda world, line: feddf_heterogeneous(world, **mixed(line)),
    "kd": lambda world, line: [bkd(world, **of_core(line))],
    "fedet": lambda world, line: fedet_rounds(world, **served(line)),
}
for variant in ("fedavg_trimmed_mean", "krum", "multi_krum"):
    FEDERATED[variant] = FEDERATED["fedavg_median"]
FEDERATED["feddf_heterogeneous"] = FEDERATED["feddf_server"]
for variant in ("uniform", "without_heads", "over_dissenters"):
    FEDERATED[f"fedet_{variant}"] = FEDERATED["fedet"]
FEDERATED["fedftg_as_released"] = FEDERATED["fedftg"]
FEDERATED["fedgkd_last"] = FEDERATED["fedgkd_vote"] = FEDERATED["fedgkd"]
FEDERATED["scaffold_i"] = FEDERATED["scaffold"]
FEDERATED["fedasync"] = FEDERATED["fedbuff"] = FEDERATED["fedavg_stale"]
FEDERATED["fedyogi"] = FEDERATED["fedadam"]
FEDERATED["fedbe_dirichlet"] = FEDERATED["fedbe_gaussian"]
for variant in ("bkd", "melting", "ema", "bkd_of_two"):
    FEDERATED[variant] = FEDERATED["kd"]
FEDERATED["fedsdd_r2"] = FEDERATED["basic"] = FEDERATED["fedsdd"]

#: To the models that are scored, and those of the clients, by number.
EXCHANGING = {
    "dsfl": lambda world, line: first_scored(
        dsfl(world, **rounds(line), **server(line), temperature=line.distillation.temperature)
    ),
    "scarlet": lambda world, line: first_scored(scarlet(world, **kept(line))),
    "fedgems": lambda world, line: first_scored(
        fedgems(world, **rounds(line), **server(line), epsilon=line.distillation.epsilon)
    ),
    "fedmd": lambda world, line: fedmd(world, **rounds(line), **server(line)),
}

#: To the server's model, those of the clients, by number, and who took part in the last round.
SPLITTING = {
    "fedgkt": lambda world, line: fedgkt(
        world,
        **rounds(line),
        **server(line),
        alpha=line.local.alpha,
        temperature=line.local.temperature,
    ),
}

#: To a student.
STUDENTS = {
    "fedkd": lambda world, line: fedkd(world, **clients(line), **server(line)),
    "fedet_os": lambda world, line: fedet(
        world, **clients(line), **server(line), diversity=line.distillation.diversity
    ),
}


def first_scored(models):
    server, own = models
    return [server], own


def ensemble(world, line, **known):
    """Return clients' models, lambda, and predictions."""
    return fens(world, **aggregated(line), **known)
