"""What tests look at in the graph."""

from fedstage.plan.data_files import public_id
from fedstage.plan.graph import listed
from fedstage.plan.members import member_kinds
from fedstage.protocol.server import teaches_live
from fedstage.protocol.teaching import teaching_of


def lists_of(inputs):
    """Return the files that a job reads, in lists by option, without the options that have none."""
    return {option: list(listed(files)) for option, files in inputs.items() if files}


def teaching_logits(recipe):
    """Return the kind of members and the images of all logits that students read."""
    kinds = () if teaches_live(recipe) else member_kinds(teaching_of(recipe).ensemble)
    found = [(kind, public_id(recipe)) for kind in kinds]
    judged = teaching_of(recipe).server.drop_worst != "none"
    return found + ([("clients", "server_validation")] if judged else [])
