"""What a run was given, read from its artefacts: samples, partition, participants, first weights.

Nothing is drawn here. A client's batches are all of its samples, so that their order does not
matter, unless somebody says which they were.
"""

import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file


class Samples:
    """Digits as a network takes them: standardised by the clients' training pixels.

    `folder` is that of the data set: `train`, `test` and `held_out` (the public images).
    """

    def __init__(self, folder):
        train, test = (load_file(folder / f"{part}.safetensors") for part in ("train", "test"))
        pixels = train["images"].double() / 255
        self.mean, self.deviation = pixels.mean().float(), pixels.std(correction=0).float()
        self.images, self.labels = self.standardised(train["images"]), train["labels"]
        self.test_images, self.test_labels = self.standardised(test["images"]), test["labels"]
        self.public = self.standardised(load_file(folder / "held_out.safetensors")["images"])
        self.folder = folder

    def standardised(self, images):
        return (images.float() / 255 - self.mean) / self.deviation

    def validation(self):
        """Return the images and labels that the server judges models by."""
        own = load_file(self.folder / "server_validation.safetensors")
        return self.standardised(own["images"]), own["labels"]

    def accuracy(self, logits):
        """Return the share of right predictions of the test images, in percent."""
        return 100 * float((logits.argmax(1) == self.test_labels).double().mean())


class Recorded(Samples):
    """A run's own choices.

    `partition` is `clients.parquet`, `participation` the table of all rounds; each group has a
    class of `networks` and a file of `initial` weights. `recorded` may return the batches of a
    round and client, `of_core` those of a round's distillation on the server's own images.
    """

    def __init__(
        self, networks, data, partition, participation, initial, recorded=None, of_core=None
    ):
        super().__init__(data)
        self.networks, self.initial = networks, initial
        self.recorded, self.of_core = recorded, of_core
        rows = pq.read_table(partition).to_pylist()
        self.own = {}
        for row in rows:
            self.own.setdefault((row["client"], row["role"]), []).append(row["sample"])
        self.clients = 1 + max(row["client"] for row in rows)
        self.plan = pq.read_table(participation).to_pylist() if participation else []

    def network(self, group=0):
        """Return the network that a group starts from."""
        network = self.networks[group]()
        network.load_state_dict(load_file(self.initial[group]))
        return network

    def participants(self, round_):
        """Return the clients of a round, in order of participants; some are absent."""
        participants = [
            row for row in self.plan if row["round"] == round_ and row["client"] is not None
        ]
        return [row["client"] for row in sorted(participants, key=lambda row: row["participant"])]

    def base_rounds(self, round_):
        """Return the rounds whose models the participants of a round start from, in their order."""
        participants = [
            row for row in self.plan if row["round"] == round_ and row["client"] is not None
        ]
        return [
            row["base_round"] for row in sorted(participants, key=lambda row: row["participant"])
        ]

    def group(self, client):
        """Return which of the clients' groups a client is in; each has a block of a round.

        It has as many as there are participants. 0 for a client who never takes part.
        """
        size = len(self.participants(1))
        return next((row["participant"] // size for row in self.plan if row["client"] == client), 0)

    def samples(self, client, role="train"):
        """Return a client's images and labels of a role."""
        own = self.own.get((client, role), [])
        return self.images[own], self.labels[own]

    def batches(self, round_, client, samples, epochs):
        """Return the batches of a client's steps in a round."""
        if self.recorded is not None:
            return self.recorded(round_, client, samples)
        return [torch.arange(samples)] * epochs

    def public_batches(self, steps):
        """Return the batches of a distillation: all public images in each step."""
        return [torch.arange(len(self.public))] * steps

    def core(self):
        """Return the images and labels that the server has of its own."""
        (number,) = (client for client, role in self.own if role == "core")
        return self.samples(number, "core")

    def core_batches(self, steps, round_=0):
        """Return the batches of the server's steps: before the first round all of its images."""
        samples = len(self.core()[1])
        if self.of_core is not None and round_:
            return self.of_core(round_, samples)
        return [torch.arange(samples)] * steps

    def aggregator_batch(self, client, samples):
        """Return the batch of a client's step for an aggregator."""
        return torch.arange(samples)
