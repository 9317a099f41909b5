"""The one place where Snakemake's internals are replaced: planning with thousands of outputs.

`tests/unit/execution/test_internals.py` fails when Snakemake changes what is relied upon here.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any


class IndexBySuffix:
    """The rules that make a file, looked up by the end of its name.

    Snakemake's own index tries all outputs with the same beginning. Thousands of outputs of
    segments begin with ``results/training/``.
    """

    def __init__(self, rules: Collection[Any]) -> None:
        self._ending: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        for rule in rules:
            for product in rule.products():
                self._ending[str(product.constant_suffix())].append((rule, product))
        self._lengths = {len(suffix) for suffix in self._ending}

    def match_producers(self, targetfile: str) -> set[Any]:
        """Return the rules that make a file."""
        ends = {targetfile[max(len(targetfile) - length, 0) :] for length in self._lengths}
        found = (pair for end in ends for pair in self._ending.get(end, ()))
        return {rule for rule, product in found if product.match(targetfile)}


def plan_faster(graph: Any) -> None:
    """Replace what takes most of the time with the thousands of outputs that segments have.

    Besides the index, that is a check that compares all outputs as paths. It looks for a file below
    another one, which must then be a directory.

    Parameters
    ----------
    graph : class
        Snakemake's class of graphs.
    """
    check = graph.check_directory_outputs

    def index(dag: Any) -> None:
        dag.output_index = IndexBySuffix(dag.rules)

    def checked(dag: Any) -> None:
        if any(file.is_directory for rule in dag.rules for file in rule.output):
            check(dag)

    graph.update_output_index = index
    graph.check_directory_outputs = checked
