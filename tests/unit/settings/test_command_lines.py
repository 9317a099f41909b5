import pytest

from fedstage.settings.validation import as_typed


def test_a_command_is_quoted():
    assert as_typed("snakemake", "--cores", "all", "a b") == "snakemake --cores all 'a b'"


@pytest.mark.parametrize(("key", "value"), [("PATH", ""), ("UV_RUN_RECURSION_DEPTH", "1")])
def test_it_begins_with_uv_where_it_is_not_found_or_uv_called_this_one(monkeypatch, key, value):
    monkeypatch.setenv(key, value)
    assert as_typed("fedstage", "verify") == "uv run fedstage verify"
