"""Peak memory of training and of inference, in each way to compute.

uv run python -m tests.benchmarks.peak_memory [--batch N] [--only WAY ...] [--output CSV]

Each figure is of a process of its own that trains a ResNet-20 for two steps, or lets it predict,
beside that of a process that only imports the package. The memory of real stages is in their
records (`fedstage why FILE`).
"""

import subprocess
import sys

from tests.benchmarks.rows import REPOSITORY, parser, report
from tests.benchmarks.training import available

CODE = """
import torch
from fedstage.training.devices import prepare
from fedstage.training.passes import compute_logits
from fedstage.training.loop import train
from fedstage.execution.notes import peak_mb
from tests.benchmarks import models, training

chosen = models.numerics({way!r}, 1, "cpu")
device, batch = prepare(chosen), {batch}
model, images = models.network(chosen, device), models.images(2 * batch, device)
if {what!r} == "training":
    settings = training.SETTINGS.model_copy(update={{"batch_size": batch}})
    batches = list(torch.arange(2 * batch).split(batch))
    labels, loss = training.labels_of(2 * batch, device), torch.nn.functional.cross_entropy
    generator = torch.Generator()
    train(model, images, labels, batches, settings, loss, models.INFO, generator, chosen)
if {what!r} == "inference":
    compute_logits(model, models.images(2000, device), models.INFO, chosen)
print(peak_mb())
"""


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--only", nargs="*", metavar="WAY", default=available("cpu"))
    chosen = options.parse_args(arguments)
    nothing = peak("fp32", "nothing", chosen.batch)
    figures = {"imports: MB": nothing}
    for what in ("training", "inference"):
        for way in chosen.only:
            taken = peak(way, what, chosen.batch)
            figures[f"{what}, {way}: MB"] = taken
            figures[f"{what}, {way}: times the imports"] = taken / nothing
    report("peak_memory", figures, vars(chosen), chosen.output)


def peak(way: str, what: str, batch: int) -> float:
    """Return the peak of a new process's memory in MB."""
    code = CODE.format(way=way, what=what, batch=batch)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
