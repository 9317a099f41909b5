"""Stage `unmask`: step 3 of secure aggregation, the shares that a participant reveals."""

from pathlib import Path

from fedstage.algorithm.secure.messages import answered, as_rows, read_messages
from fedstage.algorithm.secure.shares import SHARE_BYTES
from fedstage.algorithm.secure.steps import Participant, opened_shares, still_there
from fedstage.algorithm.secure.unmasking import check_answers, place_of, reveal
from fedstage.plan.inputs import UnmaskInputs
from fedstage.settings.exchange import secure_of
from fedstage.settings.recipes import Recipe
from fedstage.storage.tensors import save_tensors


def unmask(recipe: Recipe, read: UnmaskInputs[Path], *, revealed: Path) -> None:
    """Decrypt the shares that a participant received, and reveal one of each other one's two.

    For a participant whose masked vector arrived, it is the share of b_v; for one that dropped out
    after sending shares, it is the share of its mask key.
    """
    own, arrived = read_messages([read.private])[0], answered(read_messages(read.receipts))
    me = own.participant
    if not (me in arrived and still_there(recipe, own.metadata, "unmask")):
        save_tensors(revealed, {}, own.metadata)
        return
    check_answers("masked input", place_of(own.metadata), len(arrived), secure_of(recipe).threshold)
    public = answered(read_messages(read.public_keys))
    channels = {sender: message.text("channel") for sender, message in public.items()}
    sealed = {
        sender: message.texts("messages", of="receivers")[me]
        for sender, message in answered(read_messages(read.shares)).items()
    }
    who = Participant(own.metadata["round"], own.metadata["group"], me)
    found = reveal(opened_shares(who, own.text("channel"), channels, sealed), arrived)
    tensors = {name: as_rows(texts.values(), SHARE_BYTES) for name, texts in found.named.items()}
    of = {f"{name}_of": list(texts) for name, texts in found.named.items()}
    save_tensors(revealed, tensors, own.metadata | of)
