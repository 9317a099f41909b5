"""What tests look at in the graph."""

from fedstage.plan.graph import listed
from fedstage.plan.members import cached_kinds
from fedstage.plan.training_folder import public_id
from fedstage.settings.lines import drops_worst


def lists_of(inputs):
    """Return the files that a job reads, in lists by option, without the options that have none."""
    return {option: list(listed(files)) for option, files in inputs.items() if files}


def teaching_logits(line):
    """Return the kind of members and the images of all logits that students read."""
    found = [(kind, public_id(line)) for kind in cached_kinds(line)]
    return found + ([("clients", "server_validation")] if drops_worst(line) else [])
