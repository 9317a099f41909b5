"""Stage `share`: step 1 of secure aggregation, a participant's shares of its secrets."""

from pathlib import Path

from fedstage.algorithm.secure.envelopes import MESSAGE_BYTES
from fedstage.algorithm.secure.messages import answered, as_rows, read_messages
from fedstage.algorithm.secure.steps import Participant, Secrets, sealed_shares, still_there
from fedstage.algorithm.secure.unmasking import check_answers, place_of
from fedstage.plan.inputs import ShareInputs
from fedstage.randomness import secret
from fedstage.settings.exchange import secure_of
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import save_tensors


def share(recipe: Recipe, read: ShareInputs[Path], *, shares: Path) -> None:
    """Encrypt shares of b_u and of the private mask key, one of each for every participant.

    A participant keeps its own two shares in the same way, encrypted for itself.
    """
    own, public = read_messages([read.private])[0], answered(read_messages(read.public_keys))
    threshold = secure_of(recipe).threshold
    if not (own.tensors and still_there(recipe, own.metadata, "share")):
        save_tensors(shares, {}, own.metadata)
        return
    round_, group, client = (own.metadata[key] for key in ("round", "group", "client"))
    check_answers("advertise", place_of(own.metadata), len(public), threshold)
    secrets = Secrets(*(own.text(name) for name in Secrets._fields))
    channels = {receiver: message.text("channel") for receiver, message in public.items()}
    keys = [secret(recipe.seed, "share", round_, client, name) for name in ("seed", "mask")]
    who = Participant(round_, group, own.participant)
    sealed = sealed_shares(who, secrets, channels, threshold, (keys[0], keys[1]))
    tensors = {"messages": as_rows(sealed.values(), MESSAGE_BYTES)}
    save_tensors(shares, tensors, own.metadata | {"receivers": list(sealed)})
