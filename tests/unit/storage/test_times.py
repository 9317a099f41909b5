import os

from fedstage.storage.times import restore_order


def test_a_file_is_no_younger_than_those_made_after_it(tmp_path):
    times = {"a": 10, "renewed": 90, "b": 20, "c": 30, "renewed too": 95, "d": 30}
    for name, time in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ns=(time, time))
    restore_order([str(tmp_path / name) for name in (*times, "missing")])
    found = [(tmp_path / name).stat().st_mtime_ns for name in times]
    assert found == [10, 20, 20, 30, 30, 30]
