import logging
import sys
from io import StringIO
from types import ModuleType

from fedstage.execution import cli
from fedstage.execution.notices import noticing
from fedstage.plan.stages import STAGES


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


def test_a_stages_warnings_stand_on_the_terminal_and_in_its_log(monkeypatch, tmp_path, capsys):
    def stage(*, name: str) -> None:
        logging.getLogger("fedstage.stages").warning("%s is odd", name)

    module = ModuleType("fedstage.stages.noticed")
    module.noticed = stage
    monkeypatch.setitem(sys.modules, "fedstage.stages.noticed", module)
    monkeypatch.setitem(STAGES, "noticed", STAGES["recipe"])
    monkeypatch.setattr(cli, "write_record", lambda *arguments: None)
    log = tmp_path / "a.log"
    assert cli.run_stage("noticed", ["--name", "it", "--log", str(log)], 0.0) == 0
    assert capsys.readouterr().err == "fedstage noticed: warning: it is odd\n"
    assert log.read_text().splitlines()[1] == "fedstage noticed: warning: it is odd"
