"""What tests look at in the graph."""

from fedstage.plan.graph import listed


def lists_of(inputs):
    """Return the files that a job reads, by option, each a list, without the options without any."""
    return {option: list(listed(files)) for option, files in inputs.items() if files}
