"""Files lie in one place exactly if all that they are made from is the same."""

import hashlib
import random
from itertools import combinations

import pytest

from fedstage.plan import discriminators, one_shot
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.graph import File, Folder, Stage, behind, listed, restricted
from fedstage.settings.base import Settings
from fedstage.settings.equivalences import simplest
from fedstage.settings.lines import Line
from fedstage.settings.one_shot import OneShotLine

CLIENT = {"epochs": 2, "batch_size": 16, "learning_rate": 0.05}
SERVER = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1}
START = "results/training/a/round_0003/group_0/aggregated.safetensors"

#: Values of each setting, from which configurations are drawn; the first is the most frequent.
ONE_SHOT = {
    "data": [{"digits": {"server_validation": 20, "held_out": 40}}, "cifar10"],
    "clients": [3, 4],
    "partition": [{"dirichlet": {"alpha": 0.1}}, "iid"],
    "validation": [0.1, 0.2],
    "aggregator_fraction": [0.1, 0.2],
    "local_fraction": [None, 1.0],
    "core": [None, {"samples": "share"}, {"samples": "all"}],
    "model": ["resnet8", "cnn_small"],
    "architectures": [[], ["resnet8"], ["cnn_small", "resnet8"]],
    "initialisation": ["common", "own"],
    "start": [None, START],
    "client": [CLIENT, {**CLIENT, "momentum": 0.5}, {**CLIENT, "round_decay": 0.5}],
    "quantisation": ["none", "int8"],
    "members": [None, {"largest": {"count": 2}}, {"best": {"count": 2}}],
    "aggregator": ["averaging", "weighted", "mlp", "voting"],
    "aggregator_training": [None, {"federated": {"rounds": 5}}, {"proxy": {"steps": 5}}],
    "forget": [[], [1], [1, 1]],
    "distillation": [None, "kl", "l1", "labels", "cotrained", "closed_form"],
    "student": [None, "resnet8", "resnet20"],
    "server": [SERVER, {**SERVER, "temperature": 2.0}, {**SERVER, "momentum": 0.5}],
    "public": ["held_out", "generated", "core", "cifar100"],
    "generator": [None, "cvae", {"cvae": {"samples": 9}}, {"cvae": {"latent": 9}}, "dense"],
    "numerics": [{}, {"threads": 2}, {"logits": "fp16"}],
    "seed": [0, 1],
}
ODDS = {
    "data": ONE_SHOT["data"],
    "clients": [3, 4],
    "participants": [2, 3],
    "partition": ONE_SHOT["partition"],
    "validation": [0.0, 0.2],
    "core": ONE_SHOT["core"],
    "model": ["cnn_small", "resnet8"],
    "client": ONE_SHOT["client"],
    "local": ["fedavg", "fedprox"],
    "ensemble": [
        "odds",
        {"odds": {"average": "probabilities"}},
        {"odds": {"generator": {"steps": 5}}},
        {"odds": {"discriminator": {"epochs": 5}}},
    ],
    "global": ["basic", {"basic": {"warm_up": 1}}],
    "server": ONE_SHOT["server"],
    "public": ["held_out", "core", "cifar100"],
    "numerics": [*ONE_SHOT["numerics"], {"precision": "bf16"}],
    "seed": [0, 1],
}


def drawn(kind, values, number, seed=0):
    """Return valid configurations, each with a few settings that are not the most frequent ones."""
    draw, found = random.Random(seed), []
    while len(found) < number:
        changed = set(draw.sample(list(values), draw.randint(0, 5)))
        raw = {key: draw.choice(v) if key in changed else v[0] for key, v in values.items()}
        try:
            found.append(kind.model_validate(raw))
        except ValueError:
            continue
    return found


def derivation(file):
    """Return the digest of all that a file is made from: stage, place, settings and inputs.

    Of settings it counts those that the declaration of its folder or stage names, at their values
    in the simplest form, or at none where the configuration has no such part.
    """
    if not isinstance(file, File):
        return file
    job = file.job
    folder, config = job.stage.folder, job.config
    named = {*folder.reads(config), *job.stage.reads(config, *job.place)}
    own = canonical(restricted(config, frozenset(named)))
    inputs = {
        option: [derivation(other) for other in listed(files)]
        for option, files in job.inputs.items()
        if option != "line"
    }
    content = [job.stage.name, file.output, list(job.place), own, inputs]
    return hashlib.sha256(as_json(content).encode()).hexdigest()


def files_of(config):
    """Return every file of a configuration, by what makes it and which output it is."""
    if isinstance(config, Line):
        jobs = [discriminators.CLIENT_ODDS.job(config)]
    else:
        jobs = [one_shot.one_shot_metrics_file(config, "test").job]
    for job in jobs:
        jobs += [other for other in job.before if other not in jobs]
    return {
        (job.stage.name, job.stage.folder.name, job.place, name): file
        for job in jobs
        for name, file in job.files.items()
    }


@pytest.mark.parametrize(
    ("kind", "values"), [(OneShotLine, ONE_SHOT), (Line, ODDS)], ids=["one shot", "odds"]
)
def test_two_files_have_one_path_exactly_if_their_derivations_are_the_same(kind, values):
    known = [files_of(config) for config in drawn(kind, values, 150)]
    digests = {file: derivation(file) for files in known for file in files.values()}
    same = different = 0
    for one, other in combinations(known, 2):
        for key in one.keys() & other.keys():
            equal = digests[one[key]] == digests[other[key]]
            assert (one[key] == other[key]) == equal, (one[key], other[key])
            same, different = same + equal, different + (not equal)
    assert min(same, different) > 1000  # that the draws compare something


@pytest.mark.parametrize(
    ("kind", "values"), [(OneShotLine, ONE_SHOT), (Line, ODDS)], ids=["one shot", "odds"]
)
def test_what_reaches_a_file_is_enough_to_find_it_and_its_inputs_again(kind, values):
    for config in drawn(kind, values, 60, seed=1):
        for file in files_of(config).values():
            job = file.job
            again = job.stage.job(job.config, *job.place)
            assert again is job
            assert job.stage.job(config, *job.place) is job
            assert restricted(job.config, job.reached) == job.config


def test_a_simplest_form_is_its_own():
    for config in drawn(OneShotLine, ONE_SHOT, 200, seed=2):
        assert simplest(simplest(config)) == simplest(config)


# --- a graph of its own ---------------------------------------------------------------------------


class Cake(Settings):
    flour: int = 1
    sugar: int = 1
    icing: int = 0


def _reads(*names):
    return lambda config, *place: names


KITCHEN = Folder("cakes", Cake, lambda cake: "cake", _reads("flour"))
BATTER = Stage("batter", KITCHEN, {"output": "batter_{bowl}"}, lambda cake, bowl: {}, ("bowl",))
BAKED = Stage(
    "baked",
    KITCHEN,
    {"output": "baked", "crumbs": "crumbs"},
    lambda cake: {"batter": [BATTER(cake, bowl) for bowl in range(2)], "topping": None},
    reads=_reads("sugar"),
    made=lambda cake: ["output", "crumbs"] if cake.flour > 1 else ["output"],
)
ICED = Stage("iced", KITCHEN, {"output": "iced"}, lambda cake: {"baked": BAKED(cake)},
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


def test_a_job_has_its_inputs_by_option_and_the_outputs_that_are_made():
    plain = BAKED.job(Cake())
    assert plain.inputs["batter"] == [BATTER(Cake(), 0), BATTER(Cake(), 1)]
    assert plain.inputs["topping"] == []
    assert plain.inputs["line"] == f"{plain.folder}/line.yaml"
    assert list(plain.files) == ["output"]
    assert list(BAKED.job(Cake(flour=2)).files) == ["output", "crumbs"]
    assert [job.stage for job in plain.before] == [BATTER, BATTER]


def test_the_folders_behind_a_file_have_the_settings_that_they_are_named_after():
    found = behind(ICED(Cake(icing=3)), "results/data/no_job")
    assert list(found.values()) == [Cake(icing=3), Cake()]
    assert all(path.startswith("results/cakes/cake-") for path in found)
