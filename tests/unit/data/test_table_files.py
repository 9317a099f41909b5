import csv
import io

import pyarrow.csv as pc
import pytest

from fedstage.data.table_files import refuse_open_quote
from fedstage.errors import FedstageError


@pytest.mark.parametrize("value", ['"x', '"x""', '"x""y', '"', '"x\n'])
def test_an_open_quote_is_refused_where_arrow_reads_on(tmp_path, value):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,{value}\n2,x\n", encoding="utf-8-sig")
    options = pc.ParseOptions(newlines_in_values=True)
    assert pc.read_csv(io.BytesIO(path.read_bytes()), parse_options=options).num_rows == 1
    limit = csv.field_size_limit()
    with pytest.raises(FedstageError, match=r"a.csv: row 2: b = .*: a quote that is not closed"):
        refuse_open_quote(path)
    assert csv.field_size_limit() == limit


def test_an_open_quote_beyond_the_header_has_the_number_of_its_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2,"x\n')
    with pytest.raises(FedstageError, match=r"a.csv: row 2: column 3 = 'x\\n': a quote"):
        refuse_open_quote(path)
