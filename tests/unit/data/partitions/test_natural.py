import numpy as np
import pytest

from fedstage.data.partitions.schemes import assign
from fedstage.errors import FedstageError
from fedstage.settings.partitions import Natural

SETTINGS = Natural(name="natural")


def assigned(column, clients):
    labels = np.zeros(6, dtype=np.int64)
    return assign(SETTINGS, labels, clients, np.random.default_rng(0), column)


def test_values_of_the_column_are_mapped_in_ascending_order():
    own = assigned(np.array([70, -2, 9, 70, 9, 9]), 3)
    assert [samples.tolist() for samples in own] == [[1], [2, 4, 5], [0, 3]]


@pytest.mark.parametrize("clients", [2, 4])
def test_wrong_number_of_clients_names_both(clients):
    with pytest.raises(FedstageError, match=rf"clients = {clients}: must be 3.*natural"):
        assigned(np.array([0, 1, 2, 0, 1, 2]), clients)
