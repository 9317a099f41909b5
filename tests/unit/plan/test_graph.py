"""Files lie in one place exactly if all that they are made from is the same."""

import hashlib
import random
from collections import Counter
from functools import cache

import pytest
from tests.shared.recipes import METHODS, PREVIOUS, after
from tests.shared.settings import CLIENT, SERVER

from fedstage.plan import graph, one_shot, training
from fedstage.plan.graph import File, Folder, Stage, listed, restricted
from fedstage.plan.inputs import Inputs, P
from fedstage.plan.scores import client_accuracy, evaluation, retention
from fedstage.plan.stages import OF_ROUNDS, of_rounds, walk
from fedstage.plan.training import global_model, logits
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.exchange import (
    caches_labels,
    exchanges_features,
    exchanges_logits,
    history,
    is_stale,
)
from fedstage.protocol.groups import client_groups
from fedstage.protocol.rounds import first_distillation, is_idle
from fedstage.protocol.server import teaches_live
from fedstage.protocol.teaching import generates, learns, students
from fedstage.settings.base import Settings
from fedstage.settings.equivalences import simplest
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe

START = "results/training/a/round_0003/group_0/aggregated.safetensors"

#: Values of each setting, from which configurations are drawn; the first is the most frequent.
BOTH = {
    "data": [{"digits": {"server_validation": 20, "held_out": 40}}, "cifar10"],
    "partition": [{"dirichlet": {"alpha": 0.1}}, "iid"],
    "core": [None, {"samples": "share"}, {"samples": "all"}],
    "client": [CLIENT, {**CLIENT, "momentum": 0.5}, {**CLIENT, "round_decay": 0.5}],
    "server": [SERVER, {**SERVER, "temperature": 2.0}, {**SERVER, "momentum": 0.5}],
    "start": [None, START],
    "seed": [0, 1],
}
ONE_SHOT = BOTH | {
    "clients": [3, 4],
    "validation": [0.1, 0.2],
    "aggregator_fraction": [0.1, 0.2],
    "local_fraction": [None, 1.0],
    "model": ["resnet8", "cnn_small"],
    "architectures": [[], ["resnet8"], ["cnn_small", "resnet8"]],
    "initialisation": ["common", "own"],
    "quantisation": ["none", "int8"],
    "members": [None, {"largest": {"count": 2}}, {"best": {"count": 2}}],
    "aggregator": ["averaging", "weighted", "mlp", "voting"],
    "aggregator_training": [None, {"federated": {"rounds": 5}}],
    "forget": [[], [1], [1, 1]],
    "distillation": [None, "kl", "l1", "labels", "cotrained", "closed_form"],
    "student": [None, "resnet8", "resnet20"],
    # Images are generated in epochs.
    "server": [{**kind, "steps": None, "epochs": 2} for kind in BOTH["server"]],
    "public": ["held_out", "generated", "core", "cifar100"],
    "generator": [None, "cvae", {"cvae": {"samples": 9}}, {"cvae": {"latent": 9}}, "dense"],
    "numerics": [{}, {"threads": 2}],
}
ROUNDS = BOTH | {
    "clients": [4, 5],
    "participants": [4, 3],
    "validation": [0.0, 0.2],
    "model": ["cnn_small", "resnet8"],
    "local": ["fedavg", "fedprox", "scaffold", "fedgkd"],
    "compression": ["none", "stc", {"stc": {"bits": 32}}],
    "aggregation": [{}, {"weights": "uniform"}, {"server_optimizer": "adam"}, {"stale": "changes"}],
    "staleness": ["none", "never", {"cyclic": {"delays": [0, 1]}}, {"cyclic": {"delays": [0, 0]}}],
    "withdraw_stale": [False, True],
    "global_models": [2, 1, 3],
    "server_model": [False, True],
    "start_of": ["all", "server"],
    "ensemble": [None, "clients", "aggregated", "bayesian"],
    "global": [None, "basic", *(each["global"] for each in (PREVIOUS, after(2, "designated")))],
    "distillation": ["kl", "l1"],
    "public": ["held_out", "core", "cifar100"],
    "generator": [None, {"fedftg": {"diversity": 2.0}}],
    "numerics": [{}, {"threads": 2}],
}


def drawn(kind, number, seed=0):
    """Return valid configurations: of a method, with a few settings of others beside them."""
    values, methods = (ONE_SHOT, [{}]) if kind is OneShotRecipe else (ROUNDS, [*METHODS.values()])
    draw, found, usual = random.Random(seed), [], {key: v[0] for key, v in values.items()}
    while len(found) < number:
        changed = draw.sample(list(values), draw.randint(0, 5 if len(methods) == 1 else 3))
        raw = usual | draw.choice(methods) | {key: draw.choice(values[key]) for key in changed}
        try:
            found.append(kind.model_validate(raw))
        except ValueError:
            continue
    return found


@cache
def derivation(stage, config, place):
    """Return the digest of all that a stage makes its files from: settings and inputs.

    Of settings it counts those that the declaration of its folder or stage names, at their values
    in the simplest form of the whole configuration, or at none where there is no such part.
    """
    simple = simplest(config)
    named = {*stage.folder.reads(simple), *stage.reads(simple, *place)}
    own = canonical(restricted(simple, frozenset(named)))
    inputs = {
        option: [derived(file, config) for file in listed(files)]
        for option, files in stage.inputs(simple, *place).__dict__.items()
    }
    content = [stage.name, list(place), own, inputs]
    return hashlib.sha256(as_json(content).encode()).hexdigest()


def derived(file, config):
    """Return the derivation of a file as part of a whole configuration, or of what has it."""
    if not isinstance(file, File):
        return file
    job = file.job
    whole = config if isinstance(config, type(job.config)) else job.config
    return [file.output, derivation(job.stage, whole, job.place)]


def last_jobs(config):
    """Yield jobs behind which all files of a configuration are, of rounds those of the first 4."""
    if isinstance(config, OneShotRecipe):
        yield one_shot.one_shot_metrics_file(config, "test").job
        return
    last, groups = 4, client_groups(config)
    models = (global_model(config, last, group) for group in range(config.global_models))
    yield from (file.job for file in models if isinstance(file, File))
    kinds = ["clients", "aggregated", "gaussian_3_as_released"]
    kinds += ["split"] if exchanges_features(config) else []
    yield from (logits.job(config, last, group, k, "test") for group in groups for k in kinds)
    yield evaluation.job(config, "global_model", "test", last, 2)
    yield evaluation.job(config, "aggregated_2", "validation", last, 1)
    yield retention.job(config, last)
    yield client_accuracy.job(config, last)


def files_of(config):
    """Return every file of a configuration, by what makes it and which output it is."""
    jobs = dict.fromkeys(last_jobs(config))
    waiting = list(jobs)
    while waiting:
        new = [job for job in waiting.pop().before if job not in jobs]
        jobs |= dict.fromkeys(new)
        waiting += new
    return {
        (job.stage.name, job.stage.folder.name, job.place, name): file
        for job in jobs
        for name, file in job.files.items()
    }


@pytest.mark.parametrize("kind", [OneShotRecipe, Recipe])
def test_two_files_have_one_path_exactly_if_their_derivations_are_the_same(kind):
    """Derivations count what folders and stages declare, so that all of it is in the names."""
    configs = drawn(kind, 400, seed=4)
    known = [files_of(config) for config in configs]
    stands_for, lies_at, uses = {}, {}, Counter()
    for config, files in zip(configs, known, strict=True):
        for key, file in files.items():
            found = as_json([key[0], derived(file, config)])
            assert stands_for.setdefault(file, found) == found, file
            assert lies_at.setdefault(found, file) == file, file
            uses[file] += 1
    assert len(uses) > 500  # that the draws compare something
    assert sum(uses.values()) > 1.2 * len(uses)
    if kind is Recipe:
        check_variety(configs, known)


def check_variety(configs, known):
    """Check that among configurations of rounds each kind of file and of method is several times.

    Files are also to be those of others, before a round in which something is taught and after.
    """
    made = Counter((stage, output) for files in known for stage, _, _, output in files)
    outputs = {(stage.name, output) for stage in (*OF_ROUNDS, evaluation, retention)
               for output in stage.outputs}  # fmt: skip
    outputs |= {("client_accuracy", "output"), ("client_odds", "output")}
    assert min(made[output] for output in outputs) >= 5, made
    kinds = {
        "stale": is_stale,
        "idle": lambda config: is_idle(config, 2),
        "history": lambda config: history(config.local),
        "generated": generates,
        "live teachers": lambda config: teaches_live(config) and not generates(config),
        "buffer": lambda config: learns(config) and config.server.buffer,
        "bayesian": lambda config: learns(config) and config.ensemble.name == "bayesian",
        "warm-up": lambda config: first_distillation(config) > 1,
        "one of several groups": lambda config: 0 < len(students(config)) < config.global_models,
        "a server's model": lambda config: config.server_model,
        "labels that are kept": caches_labels,
        "logits alone": lambda config: exchanges_logits(config) and not students(config),
        "a start": lambda config: config.start,
        "in no simplest form": lambda config: simplest(config) != config,
    }
    found = {name: sum(bool(holds(config)) for config in configs) for name, holds in kinds.items()}
    assert min(found.values()) >= 5, found
    folders = [{file.job.folder for (_, folder, *_), file in files.items() if folder == "training"}
               for files in known]  # fmt: skip
    assert sum(len(each) == 2 for each in folders) >= 30


@pytest.mark.parametrize("kind", [OneShotRecipe, Recipe])
def test_what_reaches_a_file_is_enough_to_find_it_and_its_inputs_again(kind):
    configs = drawn(kind, 200, seed=1)
    for config in configs:
        assert simplest(simplest(config)) == simplest(config)
    for config in configs[:60]:
        for file in files_of(config).values():
            job = file.job
            assert job.stage.job(job.config, *job.place) is job
            if type(job.config) is kind:
                assert job.stage.job(config, *job.place) is job
            assert restricted(job.config, job.reached) == job.config


# --- a graph of its own ---------------------------------------------------------------------------


class Cake(Settings):
    flour: int = 1
    sugar: int = 1
    icing: int = 0


def _reads(*names):
    return lambda config, *place: names


KITCHEN = Folder("cakes", Cake, lambda cake: "cake", _reads("flour"))


class Raw(Inputs[P]):
    """What is baked."""

    batter: list[P]
    topping: P | None


class Plain(Inputs[P]):
    """What is iced."""

    baked: P


def _batter(cake, bowl) -> Inputs[str]:
    return Inputs()


def _baked(cake) -> Raw[str]:
    return Raw([BATTER(cake, bowl) for bowl in range(2)], None)


def _iced(cake) -> Plain[str]:
    return Plain(BAKED(cake))


BATTER = Stage(name="batter", folder=KITCHEN, outputs={"output": "batter_{bowl}"},
               inputs=_batter)  # fmt: skip
BAKED = Stage(
    name="baked", folder=KITCHEN, inputs=_baked, reads=_reads("sugar"),
    outputs={"output": "baked", "crumbs": "crumbs"},
    made=lambda cake: ["output", "crumbs"] if cake.flour > 1 else ["output"],
)  # fmt: skip
ICED = Stage(name="iced", folder=KITCHEN, outputs={"output": "iced"}, inputs=_iced,
             reads=_reads("icing"))  # fmt: skip


def test_a_setting_reaches_what_reads_it_and_all_that_is_made_of_that():
    plain, sweet, iced = Cake(), Cake(sugar=2), Cake(icing=3)
    assert BATTER(plain, 0) == BATTER(sweet, 0) == BATTER(iced, 0)
    assert BAKED(plain) == BAKED(iced) != BAKED(sweet)
    assert len({ICED(cake) for cake in (plain, sweet, iced)}) == 3
    assert ICED(iced).job.reached == {"flour", "sugar", "icing"}
    assert ICED(sweet).job.config == Cake(sugar=2)
    assert BATTER(sweet, 1).job.config == Cake()
    assert BATTER(plain, 1).endswith("/batter_1")


def test_rounds_that_are_said_to_reach_the_same_settings_do(monkeypatch):
    """A shortcut of large plans: no file lies elsewhere because of it."""

    def files_after(config, last):
        models = [global_model(config, last, group) for group in range(config.global_models)]
        return sorted(file for job in walk(models, lambda job: True) for file in job.files.values())

    configs, found = drawn(Recipe, 60, seed=3), []
    for shortcut in (True, False):
        with monkeypatch.context() as patch:  # from nothing
            global_model.cache_clear()
            of_rounds.cache_clear()
            for name in ("_job", "_reach"):
                patch.setattr(graph, name, cache(getattr(graph, name).__wrapped__))
            if not shortcut:
                patch.setattr(training, "_settles", lambda recipe: None)
            found.append([files_after(config, 12) for config in configs])
    global_model.cache_clear()
    of_rounds.cache_clear()
    assert found[0] == found[1]
