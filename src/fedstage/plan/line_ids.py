"""The folders of files that a line of any kind consists of."""

from fedstage.plan.generator_sharing import clients_generate, generating, training_generators
from fedstage.plan.identity import aggregator_id, generator_id, line_id, local_id, student_id
from fedstage.plan.one_shot_sharing import generates, local_line
from fedstage.plan.sharing import undistilled
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine


def line_ids(line: Line | LocalLine | OneShotLine) -> list[str]:
    """Return the names of the folders of a line, and of the lines that it shares files with."""
    if isinstance(line, LocalLine):
        return [local_id(line)]
    if isinstance(line, OneShotLine):
        taught = [student_id(line)] if line.distillation is not None else []
        lines = [generating(line)] if generates(line) else []
        lines += [training_generators(line)] if clients_generate(line) else []
        ids = [*taught, aggregator_id(line), local_id(local_line(line))]
        return [*ids, *map(generator_id, lines)]
    return [line_id(line), line_id(undistilled(line))]
