"""Stage `share`: step 1 of secure aggregation, a participant's shares of its secrets."""

from pathlib import Path

from fedstage.algorithm.secure.dropouts import still_there
from fedstage.algorithm.secure.envelopes import MESSAGE_BYTES, Address, Shares, seal
from fedstage.algorithm.secure.messages import answered, as_rows, read_messages
from fedstage.algorithm.secure.shares import split
from fedstage.algorithm.secure.unmasking import check_answers
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
    check_answers("advertise", round_, group, len(public), threshold)
    parts = []
    for name in ("seed", "mask"):
        key = secret(recipe.seed, "share", round_, client, name)
        parts.append(split(own.text(name), threshold, public, key))
    sealed = (
        seal(
            Shares(*(part[receiver] for part in parts)),
            Address(round_, group, own.participant, receiver),
            own.text("channel"),
            message.text("channel"),
        )
        for receiver, message in public.items()
    )
    tensors = {"messages": as_rows(sealed, MESSAGE_BYTES)}
    save_tensors(shares, tensors, own.metadata | {"receivers": list(public)})
