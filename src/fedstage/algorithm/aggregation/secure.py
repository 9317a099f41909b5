"""The server's part of secure aggregation: from masked vectors to w_{t,k}, and the bytes sent.

It gets what clients send and nothing else: public keys, masked vectors and revealed shares.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedstage.algorithm.aggregation.server import GroupRound
from fedstage.algorithm.exchange.round_state import variates
from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.secure.messages import (
    Answered,
    Message,
    answered,
    read_messages,
    revealed_by,
)
from fedstage.algorithm.secure.steps import check_answers, place_of, unmasked_sum
from fedstage.algorithm.secure.vectors import Mean, decode
from fedstage.protocol.exchange import secure_of
from fedstage.weights import Tensors, shapes_of


class MaskedRound:
    """What the server receives from a group in a round.

    Parameters
    ----------
    public_keys, vectors, revealed : sequence of Path
        The messages of all participants of the group, as `secure.messages` describes them.
    """

    def __init__(
        self, public_keys: Sequence[Path], vectors: Sequence[Path], revealed: Sequence[Path]
    ) -> None:
        self.advertised = read_messages(public_keys)
        self.vectors = answered(read_messages(vectors))
        self.revealed = answered(read_messages(revealed))

    @property
    def place(self) -> dict[str, int]:
        """The round and group."""
        return {key: self.advertised[0].metadata[key] for key in ("round", "group")}

    @property
    def present(self) -> list[Message]:
        """The first messages of participants that are not absent."""
        return [message for message in self.advertised if message.tensors]

    def mean(self, group: GroupRound) -> Mean:
        """Return the mean change of the participants whose masked vectors arrived.

        Raises
        ------
        FedstageError
            If fewer participants than the threshold have sent vectors or revealed shares.
        """
        where, secure = place_of(self.place), secure_of(group.settings)
        check_answers("masked input", where, len(self.vectors), secure.threshold)
        check_answers("unmask", where, len(self.revealed), secure.threshold)
        total = unmasked_sum(
            {u: message.tensors["vector"].numpy() for u, message in self.vectors.items()},
            {message.participant: message.text("mask") for message in self.present},
            {u: revealed_by(message) for u, message in self.revealed.items()},
            secure.threshold,
        )
        weighting, clients = group.settings.aggregation.weights, len(self.vectors)
        sent = group.trainer.summed(group.parameters)
        shapes = shapes_of(group.parameters), shapes_of(sent)
        return decode(secure, weighting, total, clients, *shapes)

    def columns(self, group: GroupRound) -> dict[str, list[Any]]:
        """Return the table of participants.

        The server does not learn the participants' samples, steps, losses and distances: these are
        null.
        """
        names = ("round", "group", "participant", "client", "base_round")
        columns = {name: [one.metadata[name] for one in self.present] for name in names}
        unknown = [None] * len(self.present)
        columns |= dict.fromkeys(("samples", "steps", "loss", "distance"), unknown)
        columns["dropped"] = [one.participant not in self.vectors for one in self.present]
        steps, vector = self._steps, self._vector_bytes
        columns["bytes_up"] = [steps.bytes_up(one.participant, vector) for one in self.present]
        with_model = group.trainer.sent_down(group.parameters, variates(group.state))
        start = payload_bytes(group.start) + payload_bytes(with_model)
        columns["bytes_down"] = [start + steps.bytes_down(one.participant) for one in self.present]
        return columns

    @property
    def _steps(self) -> Answered:
        """Who answered which step; participants whose shares are revealed have sent shares."""
        shares = [revealed_by(message) for message in self.revealed.values()]
        shared = {u for of in shares for u in (*of.seeds, *of.mask_keys)}
        present = {message.participant for message in self.present}
        return Answered(present, shared, self.vectors.keys(), self.revealed.keys())

    @property
    def _vector_bytes(self) -> int:
        return payload_bytes(next(iter(self.vectors.values())).tensors)


def server_state(group: GroupRound, mean: Mean) -> Tensors:
    """Return the server's part of the local trainers' state, computed from sums alone."""
    state, clients = variates(group.state), group.settings.clients
    return group.trainer.server_state(state, mean.payload, clients)
