import pytest

from fedstage.data.table_files import read_table
from fedstage.errors import FedstageError


@pytest.mark.parametrize("value", ['"x', '"x""', '"x""y', '"', '"x\n'])
def test_an_open_quote_is_refused(tmp_path, value):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,{value}\n2,x\n", encoding="utf-8-sig")
    with pytest.raises(FedstageError, match=r"a.csv: row 2: a quote that is not closed"):
        read_table(path)


def test_an_open_quote_beyond_the_header_has_its_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2\n1,2,"x\n')
    with pytest.raises(FedstageError, match=r"a.csv: row 3: a quote"):
        read_table(path)
