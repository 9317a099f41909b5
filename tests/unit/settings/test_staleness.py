"""Delays have one form."""

import pytest
from pydantic import TypeAdapter, ValidationError

from fedstage.settings.equivalences import shortest
from fedstage.settings.groups import Staleness

READ = TypeAdapter(Staleness).validate_python


def test_a_staleness_has_one_shortest_form():
    for long, short in (
        ("none", "none"),
        ("never", "never"),
        ({"cyclic": {"delays": [0]}}, "none"),
        ({"cyclic": {"delays": [0, 0]}}, "none"),
        ({"cyclic": {"delays": [2, 2]}}, {"cyclic": {"delays": [2]}}),
        ({"cyclic": {"delays": [0, 1, 0, 1]}}, {"cyclic": {"delays": [0, 1]}}),
        ({"cyclic": {"delays": [0, 1, 0]}}, {"cyclic": {"delays": [0, 1, 0]}}),
        ({"random": {"probabilities": [1.0]}}, "none"),
        ({"random": {"probabilities": [1, 0, 0]}}, "none"),
        ({"random": {"probabilities": [0.5, 0.5, 0]}}, {"random": {"probabilities": [0.5, 0.5]}}),
        ({"random": {"probabilities": [0, 1.0]}}, {"random": {"probabilities": [0, 1.0]}}),
    ):
        assert shortest(READ(long)) == READ(short), long


def test_probabilities_sum_to_one():
    with pytest.raises(ValidationError, match="must sum to 1"):
        READ({"random": {"probabilities": [0.5, 0.4]}})
