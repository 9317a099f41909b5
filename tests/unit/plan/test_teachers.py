"""Teachers and students of a round: what logits, labels and distillations are made from."""

from tests.shared import recipes
from tests.shared.graph import lists_of
from tests.shared.recipes import BASIC, DESIGNATED, served_by

from fedstage.plan import data_files
from fedstage.plan.training import (
    aggregated_model,
    global_model,
    logits,
    member_logits,
    member_models,
    teacher_logits,
    updates,
)
from fedstage.plan.training_folder import public_file
from fedstage.settings.ensembles import Clients

SERVED = recipes.SERVED | DESIGNATED


def recipe(**changes):
    return recipes.recipe(**BASIC | {"global_models": 2} | changes)


def read(file):
    """Return what the job of a file reads, without what all jobs read."""
    found = lists_of(file.job.inputs)
    return {option: files for option, files in found.items() if option not in {"recipe", "info"}}


def all_updates(config, round_, groups=(0, 1)):
    return [path for group in groups for path in updates(config, round_, group)]


# --- logits ---------------------------------------------------------------------------------------


def test_logits_read_the_models_of_members_and_samples():
    one = recipe()
    models, aggregated = updates(one, 3, 1), [aggregated_model(one, 3, 1)]
    start = [global_model(one, 2, 1)]
    drawn = {"models": models, "aggregated": aggregated}
    for members, expected in (
        ("clients", {"models": models}),
        ("aggregated", {"models": aggregated}),
        ("gaussian_3", drawn),
        ("dirichlet_3", drawn),
        ("gaussian_3_as_released", drawn | {"start": start}),
    ):
        for images in ("test", "test_own", "held_out", "server_validation", "validation"):
            name = {"validation": "train"}.get(images, images)
            samples = {"data": [data_files.data_file(one.data, name)]}
            if images == "validation":
                samples["clients"] = [data_files.clients_table(one)]
            file = logits(one, 3, 1, members, images)
            assert read(file) == expected | samples
            assert file.endswith(f"/round_0003/group_1/logits/{members}-{images}.safetensors")
        found = list(member_models(one, 3, 1, members))
        assert found == [path for files in expected.values() for path in files]


def test_members_of_a_teacher():
    bayesian = {"bayesian": {"distribution": "dirichlet", "samples": 3}}
    for ensemble, kinds, round_, rounds in (
        ("clients", ["clients"], 3, [3]),
        (bayesian, ["aggregated", "clients", "dirichlet_3"], 3, [3]),
        ({"aggregated": {"checkpoints": 1}}, ["aggregated"], 5, [5]),
        ({"aggregated": {"checkpoints": 3}}, ["aggregated"], 2, [1, 2]),
        ({"aggregated": {"checkpoints": 3}}, ["aggregated"], 7, [5, 6, 7]),
    ):
        one = recipe(ensemble=ensemble)
        assert teacher_logits(one, round_) == [
            logits(one, past, group, kind, "held_out")
            for past in rounds for group in (0, 1) for kind in kinds
        ]  # fmt: skip
    weighted = (Clients(name="clients", weights=weights) for weights in ("uniform", "samples"))
    assert len({tuple(member_logits(recipe(), 2, one, "test")) for one in weighted}) == 1
    assert teacher_logits(recipe(**SERVED), 3) == [
        logits(recipe(**SERVED), 3, group, "clients", "held_out") for group in (1, 2)
    ]


# --- students -------------------------------------------------------------------------------------

OWN = {"server_validation": [data_files.data_file(recipe().data, "server_validation")]}
AUGMENTED = {"augmentation": "flip", "teacher_images": "augmented"}


def test_students_read_what_their_server_uses():
    def judged(one):
        images = [logits(one, 3, group, "clients", "server_validation") for group in (0, 1)]
        return OWN | {"judged": images, "updates": updates(one, 3, 1)}

    def asked(one):
        return {"members": all_updates(one, 3)}

    for server, more, expected in (
        ({}, {}, lambda one: {}),
        ({"early_stopping": {}}, {}, lambda one: OWN),
        ({"drop_worst": "as_published"}, {}, judged),
        ({"factor_transfer": {}}, {"model": "resnet8"}, asked),
        ({"factor_transfer": {"weight": 0.0}}, {"model": "resnet8"}, lambda one: {}),
        (AUGMENTED, {}, lambda one: asked(one) | {"logits": None}),
        ({}, {"global": {"basic": {"starts_from": "previous"}}},
         lambda one: {"start": [global_model(one, 2, 1)]}),
    ):  # fmt: skip
        one = recipe(**served_by(**server) | more)
        usual = {
            "start": [aggregated_model(one, 3, 1)],
            "logits": teacher_logits(one, 3),
            "public": [public_file(one)],
        }
        found = {option: files for option, files in (usual | expected(one)).items() if files}
        assert read(global_model(one, 3, 1)) == found, (server, more)
        assert list(global_model(one, 3, 1).job.files) == ["output"]
    # Averages of earlier rounds are asked, too.
    one = recipe(**served_by(**AUGMENTED), ensemble={"aggregated": {"checkpoints": 2}})
    averages = [aggregated_model(one, round_, group) for round_ in (2, 3) for group in (0, 1)]
    assert read(global_model(one, 3, 0))["members"] == averages
