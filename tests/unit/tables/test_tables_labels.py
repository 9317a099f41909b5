import numpy as np
import pandas as pd
import pytest

from fedstage.results.tables.labels import join_labels, show_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1.0, "1"),
        (np.float64(1e-5), "1e-05"),
        (20, "20"),
        (True, "true"),
        (np.bool_(False), "false"),
        ("dirichlet", "dirichlet"),
        (None, "none"),
        (pd.NA, "none"),
    ],
)
def test_values_are_written_as_a_person_would(value, text):
    assert show_value(value) == text


def test_several_axes_are_named_with_their_values():
    assert join_labels(["data", "alpha"], ["svhn", 0.1]) == "data = svhn, alpha = 0.1"
    assert join_labels([], []) == ""
