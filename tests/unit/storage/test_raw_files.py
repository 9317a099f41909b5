"""Digests of raw files, and when a file is read again."""

import os

import pytest

from fedstage.errors import FedstageError
from fedstage.settings.base import subclasses
from fedstage.settings.data import (
    AgNews,
    DataOption,
    DataSet,
    Digits,
    HeartDisease,
    ParquetData,
    TableData,
    TorchvisionData,
)
from fedstage.settings.validation import validate
from fedstage.storage import raw_files as module
from fedstage.storage.files import load_json, save_json
from fedstage.storage.planned import write_raw
from fedstage.storage.raw_files import (
    check_planned,
    digests,
    find_part,
    place_of,
    raw_contents,
    raw_files,
)

MINE = ParquetData(name="parquet", folder="mine")
ALICE = "2bd806c97f0e00af"  # SHA-256 of "alice", by sha256sum


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "data" / "mine"
    place.mkdir(parents=True)
    for name, text in {"train-1": "alice", "train-0": "bob", "test": "carol"}.items():
        (place / f"{name}.parquet").write_text(text)
    return place.parent


@pytest.fixture
def read(monkeypatch):
    """The names of the files that are read."""
    names, digest = [], module._digest

    def note(path):
        names.append(path.name)
        return digest(path)

    monkeypatch.setattr(module, "_digest", note)
    return names


@pytest.fixture
def settled(monkeypatch):
    """Files that were written long ago."""
    monkeypatch.setattr(module, "_SETTLED", -1.0)


def test_files_have_names_and_digests(folder):
    contents = raw_contents(MINE, folder)
    assert list(contents) == ["mine/test.parquet", "mine/train-0.parquet", "mine/train-1.parquet"]
    assert contents["mine/train-1.parquet"] == ALICE


def test_of_a_folder_of_tables_only_tables_are_read(folder, read):
    for name in ("train.csv", "huge.iso", "secret.key", "below/a.csv"):
        (folder / "mine" / name).parent.mkdir(exist_ok=True)
        (folder / "mine" / name).write_text("x")
    raw_contents(TableData(name="table", folder="mine"), folder)
    tables = ["a.csv", "test.parquet", "train-0.parquet", "train-1.parquet", "train.csv"]
    assert sorted(read) == tables


@pytest.mark.parametrize("name", ["table", "parquet", "ag_news", "isic2019", "camelyon16"])
def test_of_a_folder_that_holds_no_data_set_nothing_is_read(tmp_path, read, name):
    (tmp_path / "others").mkdir()
    for one in ("disk.iso", "secret.key", "notes"):
        (tmp_path / "others" / one).write_text("x")
    settings = validate(DataOption, {"data": {name: {"folder": "others"}}}, "x").data
    assert raw_contents(settings, tmp_path) is None
    assert read == []


def test_place_and_times_do_not(folder, tmp_path):
    before = raw_contents(MINE, folder)
    for path in (folder / "mine").iterdir():
        os.utime(path, (1, 1))
    assert raw_contents(MINE, folder) == before
    assert raw_contents(MINE, folder.rename(tmp_path / "elsewhere")) == before


def test_files_that_the_loader_does_not_read_do_not_count(folder):
    before = raw_contents(MINE, folder)
    for name in ("README.md", ".hidden.parquet", "other.json"):
        (folder / "mine" / name).write_text("new")
    assert raw_contents(MINE, folder) == before


def test_validation_files_count_where_there_is_no_test(folder):
    (folder / "mine/test.parquet").rename(folder / "mine/validation.parquet")
    assert "mine/validation.parquet" in raw_contents(MINE, folder)


def test_a_file_is_read_once(folder, read, settled):
    first = raw_contents(MINE, folder)
    assert sorted(read) == ["test.parquet", "train-0.parquet", "train-1.parquet"]
    read.clear()
    assert raw_contents(MINE, folder) == first
    assert read == []


def test_only_what_has_changed_is_read_again(folder, read, settled):
    raw_contents(MINE, folder)
    path, times = folder / "mine/test.parquet", (folder / "mine/test.parquet").stat()
    read.clear()
    path.write_text("CAROL")  # as many bytes
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # of the same time
    assert raw_contents(MINE, folder)["mine/test.parquet"] != ALICE
    assert read == ["test.parquet"]


def test_a_file_that_was_just_written_is_read_again(folder, read):
    for _ in range(2):
        raw_contents(MINE, folder)
    assert len(read) == 2 * 3


@pytest.mark.parametrize("content", ["", "[]", '{"a.txt": 3}', "\0"])
def test_a_damaged_cache_knows_nothing(tmp_path, content):
    cache = tmp_path / "cache.json"
    cache.write_text(content)
    (tmp_path / "a.txt").write_text("alice")
    assert digests({"a.txt": tmp_path / "a.txt"}, cache) == {"a.txt": ALICE}


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, settled):
    (tmp_path / "a.txt").write_text("alice")
    cache = tmp_path / "a.txt" / "cache.json"
    assert digests({"a.txt": tmp_path / "a.txt"}, cache) == {"a.txt": ALICE}


def test_the_list_of_data_that_is_not_there_is_what_the_job_has_read(folder, tmp_path):
    listed, record = tmp_path / "results/raw/mine.json", tmp_path / "a.json"
    write_raw(listed, MINE, folder, record)
    before = raw_contents(MINE, folder)
    assert load_json(listed) == before
    save_json(record, {"stage": "dataset", "raw": {"files": before}})
    for path in (folder / "mine").iterdir():
        path.unlink()
    for place in (folder, folder / "nowhere", None):
        write_raw(listed, MINE, place, record)
        assert load_json(listed) == before
    write_raw(listed, MINE, None, tmp_path / "none.json")
    assert load_json(listed) == before
    write_raw(listed.with_name("new.json"), MINE, None, tmp_path / "none.json")
    assert load_json(listed.with_name("new.json")) == {}


@pytest.mark.parametrize(
    "settings",
    [
        Digits(name="digits"),
        TorchvisionData(name="svhn"),
        HeartDisease(name="heart_disease"),
    ],
)
def test_verified_data_has_no_raw_files(folder, settings):
    assert raw_files(settings, folder) == {}
    assert raw_contents(settings, folder) is None


def test_a_file_of_a_setting_counts_where_it_is_set(folder):
    for name in ("train.csv", "test.csv"):
        (folder / "mine" / name).write_text(name)
    (folder / "pieces [1].txt").write_text("[PAD]")
    without = AgNews(name="ag_news", folder="mine")
    given = without.model_copy(update={"vocabulary": "pieces [1].txt"})
    assert list(raw_contents(without, folder)) == ["mine/train.csv", "mine/test.csv"]
    assert "pieces [1].txt" in raw_contents(given, folder)
    assert place_of(given, folder, "vocabulary") == folder / "pieces [1].txt"
    (folder / "mine/classes.txt").write_text("ham\nspam")
    assert "mine/classes.txt" in raw_contents(without, folder)


def test_a_folder_is_taken_literally_and_may_lie_elsewhere(folder):
    odd = (folder / "mine").rename(folder / "my [data]*")
    for name in ("my [data]*", str(odd)):
        settings = ParquetData(name="parquet", folder=name)
        assert [path.name for path in find_part(settings, folder, "files")][:1] == ["test.parquet"]
        assert len(raw_contents(settings, folder)) == 3


def test_a_data_set_that_names_no_files_reads_its_whole_folder(folder):
    class New(DataSet):
        name: str = "new"
        folder: str = "mine"

    (folder / "mine/below").mkdir()
    (folder / "mine/below/more.txt").write_text("more")
    assert len(raw_contents(New(), folder)) == 4


def test_a_data_set_without_a_folder_must_name_its_files(folder):
    class Elsewhere(DataSet):
        name: str = "elsewhere"

    fault = r"data = elsewhere: raw: '\{folder\}/\*\*/\*': there is no setting 'folder'"
    with pytest.raises(FedstageError, match=fault):
        raw_contents(Elsewhere(), folder)


def test_every_data_set_in_the_folder_says_what_it_reads():
    kinds = [
        kind
        for kind in subclasses(DataSet)
        if kind.__module__ == DataSet.__module__ and "name" in kind.__annotations__
    ]
    for kind in kinds:
        for patterns in kind.raw.values() if kind.in_folder else ():
            keys = {pattern.partition("/")[0].strip("{}") for pattern in patterns}
            assert keys <= set(kind.model_fields), kind


def test_much_to_read_is_said(folder, capsys, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 1)
    raw_contents(MINE, folder)
    assert "of raw data" in capsys.readouterr().err


@pytest.fixture
def planned(folder, tmp_path):
    """The list of the plan."""
    write_raw(tmp_path / "raw.json", MINE, folder, tmp_path / "none.json")
    return tmp_path / "raw.json"


def test_a_file_other_than_the_planned_one_is_refused(folder, planned):
    check_planned(MINE, folder, planned)
    check_planned(MINE, folder, None)
    (folder / "mine/train-1.parquet").write_text("alicf")
    told = f"{folder}: mine/train-1.parquet: not as it was when the run was planned; start it again"
    with pytest.raises(FedstageError, match=told):
        check_planned(MINE, folder, planned)
