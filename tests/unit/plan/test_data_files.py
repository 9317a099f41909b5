"""Files that runs share: data sets, partitions, participants and initial models."""

from fedstage.plan import data_files
from fedstage.settings.recipes import Recipe

ONE = Recipe.model_validate({
    "data": "digits", "clients": 10, "partition": "iid", "participants": 8, "model": "cnn_small",
    "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}, "seed": 0,
})  # fmt: skip


def test_samples_of_roles_are_in_the_folder_of_the_data_set():
    folder = data_files.data_file(ONE.data, "info").removesuffix("/info.json")
    assert data_files.data_file(ONE.data, "held_out") == f"{folder}/held_out.safetensors"
    for role, name in (("test", "test"), ("test_own", "test_own"), ("validation", "train")):
        assert data_files.samples_file(ONE, role) == f"{folder}/{name}.safetensors"


def test_participation_is_in_blocks_that_do_not_depend_on_the_length():
    for round_, name in ((1, "0001-0100"), (100, "0001-0100"), (101, "0101-0200"),
                        (9900, "9801-9900")):  # fmt: skip
        path = data_files.participation_table(ONE, round_)
        assert path == f"results/participation/8_of_10-seed0/rounds_{name}.parquet"


def test_each_group_has_an_initial_model():
    paths = {data_files.initial_weights(ONE.data, ONE.model, 0, group) for group in range(3)}
    assert len(paths) == 3
    assert all(path.startswith("results/") for path in paths)
