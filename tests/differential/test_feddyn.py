"""The example of a plugin, FedDyn, against the paper's algorithm with PyTorch alone."""

import pytest
from reference.feddyn import feddyn
from reference_calls import rounds
from reference_runs import CLIENTS, EXACT, PARTICIPANTS, REPOSITORY, ROUNDS, experiment, make

from fedstage.plan.training import global_model
from fedstage.settings.plugins import load_plugins

pytestmark = pytest.mark.workflow

FOLDER = REPOSITORY / "workflow/project/my_methods"
ALPHA = 0.5


def test_the_plugin_ends_in_the_weights_of_the_reference(tmp_path):
    server = {"feddyn": {"alpha": ALPHA, "share": PARTICIPANTS / CLIENTS}}
    method = {
        "local": {"feddyn": {"alpha": ALPHA}},
        "aggregation": {"weights": "uniform", "server_optimizer": server},
    }
    made = make(
        tmp_path,
        {
            "targets": ["exact"],
            "plugins": [str(FOLDER)],
            "execution": {"granularity": "segment"},
            "experiments": {
                "exact": experiment("Exact", {"feddyn": method}, {"method": ["feddyn"]}, EXACT)
            },
        },
    )
    load_plugins([str(FOLDER)])
    try:
        recipe = made.recipe("feddyn")
        world = made.recorded(recipe)
        took_part = [client for t in range(1, ROUNDS + 1) for client in world.participants(t)]
        assert len(set(took_part)) < len(took_part)  # so that a client's g is used
        model = feddyn(world, **rounds(recipe), alpha=ALPHA)
        weights = made.tensors(global_model(recipe, ROUNDS, 0))
        for name, value in model.state_dict().items():
            assert float((value - weights[name]).abs().max()) <= 1e-6
    finally:
        load_plugins([])
