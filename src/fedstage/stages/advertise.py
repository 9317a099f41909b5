"""Stage `advertise`: step 0 of secure aggregation, a participant's keys for a round."""

from pathlib import Path

from fedstage.algorithm.secure.masks import public_key
from fedstage.algorithm.secure.messages import as_tensors
from fedstage.data.participation import client_of
from fedstage.plan.inputs import AdvertiseInputs
from fedstage.randomness import secret
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.storage.tensors import save_tensors


def advertise(
    recipe: Recipe,
    read: AdvertiseInputs[Path],
    made: Made,
    *,
    round_: int,
    group: int,
    participant: int,
) -> None:
    """Draw a participant's two key pairs and b_u, the seed of its self mask.

    They follow from the seed of the run, because a simulation must be reproducible byte for byte;
    anyone with the seed can unmask everything. Outside a simulation they come from the client's
    system.
    """
    client, base = client_of(read.participation, round_, participant)
    place = {"round": round_, "group": group, "participant": participant, "client": client}
    metadata = place | {"base_round": base}
    if client is None:
        save_tensors(made["private"], {}, metadata)
        save_tensors(made["public"], {}, metadata)
        return
    names = ("channel", "mask", "seed")
    own = {name: secret(recipe.seed, "advertise", round_, client, name) for name in names}
    save_tensors(made["private"], as_tensors(own), metadata)
    sent = {name: public_key(own[name]) for name in ("channel", "mask")}
    save_tensors(made["public"], as_tensors(sent), metadata)
