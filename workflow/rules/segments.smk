"""Several rounds in one job, in place of the rules of training and distillation.

There are no wildcards: which rounds make a segment differs from line to line, so each segment of
the lines that are asked for is a rule. The stage and its rounds are params that take `output`:
snakemake does not compare such params with those of an earlier run, so that a run can go on in
another granularity.
"""

ASKED = asked_runs(CATALOGUE, sys.argv)
SEGMENTS, LOGITS_SEGMENTS = plan(
    ASKED, EXECUTION.segment_rounds if EXECUTION.granularity == "segment" else 1
)
READS = {part: segment_files.inputs(part) for part in [*SEGMENTS, *LOGITS_SEGMENTS]}
READ = () if KEEP == "all" else segment_files.files_read(ASKED, READS.values())
READ = READ and READ | set(tables_read(CATALOGUE))
KEPT = {part: segment_files.rounds_kept(part, KEEP, READ) for part in SEGMENTS}
MADE = {part: segment_files.segment_outputs(part, KEPT[part]) for part in SEGMENTS}
MADE |= {part: segment_files.logits_outputs(part) for part in LOGITS_SEGMENTS}
FIRST = segment_files.first_of_each(MADE.values())

for PART in MADE:

    rule:
        name:
            PART.name
        input:
            **segment_files.common_inputs(PART),
            # Of each segment that makes some of the files the first, to wait for. Made round by
            # round they may be younger than this segment's first rounds. Their bytes follow from
            # settings and source, which the params of this rule hold.
            others=ancient(list(dict.fromkeys(FIRST.get(path, path) for path in READS[PART]))),
        output:
            MADE[PART],
        log:
            f"results/logs/{PART.stage}/{PART.name}.log",
        threads: PART.line.numerics.threads
        resources:
            gpu=gpus_of(PART.line),
        params:
            source=source_of(PART.line, PART.stage, members=PART.members),
            stage=lambda w, output, part=PART: part.stage,
            which=lambda w, output, part=PART: segment_files.options(part, KEPT.get(part)),
        message:
            f"{PART.about} ({line_id(PART.line)})"
        shell:
            "fedstage {params.stage} --log {log} --fingerprint {params.source}"
            " --line {input.line} {params.which}"
