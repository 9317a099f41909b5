import logging
from io import StringIO

from fedstage.execution import jobs
from fedstage.execution.jobs import Work
from fedstage.execution.notes import QUIET, noticing
from fedstage.storage.files import load_json


def test_notices_of_the_package_are_collected_and_only_within():
    logger = logging.getLogger("fedstage.stages.nonsuch")
    with noticing("aggregation") as notices:
        logger.warning("%d of %d", 3, 4)
        logger.info("round 1")
        logger.debug("nothing")
        logging.getLogger("other").warning("nothing")
    logger.warning("after")
    assert (
        notices.getvalue()
        == "fedstage aggregation: warning: 3 of 4\nfedstage aggregation: round 1\n"
    )


def test_notices_stand_on_a_stream_at_once():
    stream = StringIO()
    with noticing("segment", stream):
        logging.getLogger("fedstage.stages").info("round 1")
        assert stream.getvalue() == "fedstage segment: round 1\n"


def test_quiet_jobs_print_warnings_only(monkeypatch):
    monkeypatch.setenv(QUIET, "1")
    stream = StringIO()
    with noticing("segment", stream) as notices:
        logging.getLogger("fedstage.stages").info("round 1")
        logging.getLogger("fedstage.stages").warning("careful")
    assert stream.getvalue() == "fedstage segment: warning: careful\n"
    assert len(notices.getvalue().splitlines()) == 2


def test_a_stages_warnings_stand_on_the_terminal_and_in_its_record(monkeypatch, tmp_path, capsys):
    record, logger = tmp_path / "a.json", logging.getLogger("fedstage.stages")
    job = Work("noticed", str(record), {}, {}, [], lambda: logger.warning("it is odd"))
    monkeypatch.setattr(jobs, "job_of", lambda *words: job)
    assert jobs.run("noticed", "it") == 0
    assert capsys.readouterr().err == "fedstage noticed: warning: it is odd\n"
    assert load_json(record)["notices"] == ["fedstage noticed: warning: it is odd"]
    assert "distilled" not in load_json(record)


def test_what_distillations_did_stands_in_the_record_of_their_job_in_numbers(monkeypatch, tmp_path):
    record, logger = tmp_path / "a.json", logging.getLogger("fedstage.algorithm")
    rows = [{"round": round_, "agreement": 70.5} for round_ in (1, 2)]

    def two_rounds():
        for row in rows:
            logger.info("round %d", row["round"], extra={"distilled": row})

    job = Work("segment", str(record), {}, {}, [], two_rounds)
    monkeypatch.setattr(jobs, "job_of", lambda *words: job)
    assert jobs.run("segment", "it") == 0
    assert load_json(record)["distilled"] == rows
    assert len(load_json(record)["notices"]) == 2
