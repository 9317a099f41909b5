"""Rounds of a group in one job. Each segment of a line that is asked for is a rule of its own.

There are no wildcards: which rounds make a segment differs from line to line. Which they are is a
param that takes `output`: snakemake does not compare such params with those of an earlier run, so
that a run can go on in another granularity.
"""

ASKED = asked_runs(CATALOGUE, sys.argv)
LENGTH = CATALOGUE.config.execution.segment_rounds if GRANULARITY == "segment" else 1
SEGMENTS, LOGITS_SEGMENTS = segments.plan(ASKED, LENGTH)
KEEP = CATALOGUE.config.keep
READS = {part: segments.inputs(part) for part in [*SEGMENTS, *LOGITS_SEGMENTS]}
READ = () if KEEP == "all" else segments.files_read(ASKED, READS.values())
READ = READ and READ | set(tables_read(CATALOGUE))
KEPT = {part: segments.rounds_kept(part, KEEP, READ) for part in SEGMENTS}
MADE = {part: segments.segment_outputs(part, KEPT[part]) for part in SEGMENTS}
MADE |= {part: segments.logits_outputs(part) for part in LOGITS_SEGMENTS}
FIRST = segments.first_of_each(MADE.values())


def from_segments(paths):
    """Return what to wait for: of each segment that makes some of the files, the first."""
    return ancient(list(dict.fromkeys(FIRST.get(path, path) for path in paths)))


for part in SEGMENTS:

    rule:
        name:
            part.name
        input:
            line=graph.line_file(part.line),
            data=graph.data_file(part.line.data, "train"),
            info=graph.data_file(part.line.data, "info"),
            clients=graph.clients_table(part.line),
            public=(
                graph.public_file(part.line)
                if part.line.global_trainer
                else graph.statistics_images(part.line)
            ),
            validation=graph.server_validation(part.line) or [],
            # Made round by round they may be younger than this segment's first rounds. Their bytes
            # follow from settings and source, which the params of this rule hold.
            others=from_segments(READS[part]),
        output:
            MADE[part],
        log:
            f"results/logs/segment/{part.name}.log",
        threads: part.line.numerics.threads
        resources:
            gpu=gpus(part.line),
        params:
            source=source_of(part.line, "segment"),
            which=lambda w, output, part=part: segments.options(part, KEPT[part]),
        message:
            f"rounds {part.first} to {part.last} of group {', '.join(map(str, part.groups))}"
            f" ({line_id(part.line)})"
        shell:
            "fedstage segment --log {log} --fingerprint {params.source}"
            " --line {input.line} {params.which}"


for part in LOGITS_SEGMENTS:

    rule:
        name:
            part.name
        input:
            line=graph.line_file(part.line),
            models=from_segments(READS[part]),
            public=part.public,
            info=graph.data_file(part.line.data, "info"),
        output:
            MADE[part],
        log:
            f"results/logs/logits_segment/{part.name}.log",
        threads: part.line.numerics.threads
        resources:
            gpu=gpus(part.line),
        params:
            source=source_of(part.line, "logits_segment", members=part.members),
            which=lambda w, output, part=part: segments.options(part),
        message:
            f"logits of rounds {part.rounds[0]} to {part.rounds[-1]} ({line_id(part.line)})"
        shell:
            "fedstage logits_segment --log {log} --fingerprint {params.source}"
            " --line {input.line} --public {input.public}"
            " {params.which}"
