"""Facts about sources that are kept between calls."""

import pytest

from fedstage.plan import syntax
from fedstage.plan.syntax import cache_folder, key_of, recall, remember


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    syntax.facts.cache_clear()
    yield
    syntax.facts.cache_clear()


def test_what_is_remembered_is_recalled():
    key = key_of("module", b"content")
    assert recall(key) is None
    remember(key, ["digest", "name"])
    assert recall(key) == ["digest", "name"]
    assert [path.name for path in (cache_folder() / "source").iterdir()] == [key]


def test_a_key_changes_with_the_module_and_with_each_content():
    assert (
        len({key_of(*of) for of in [("a", b"x", b"y"), ("b", b"x", b"y"), ("a", b"xy", b"")]}) == 3
    )


def test_a_folder_that_cannot_be_written_to_is_done_without(tmp_path):
    (tmp_path / "cache").write_text("a file is in the way")
    remember("key", ["digest"])
    assert recall("key") is None
    assert len(syntax.module_digest("fedstage.randomness")) == 64


def test_what_was_cut_off_is_found_out_again():
    before = syntax.facts("fedstage.randomness")
    (path,) = (cache_folder() / "source").iterdir()
    for text in ("", path.read_text()[:-1], "\xff"):
        path.write_text(text)
        syntax.facts.cache_clear()
        assert recall(path.name) is None
        assert syntax.facts("fedstage.randomness") == before
