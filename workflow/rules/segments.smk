"""Several rounds in one job, in place of the rules of training and distillation.

Which rounds make a segment differs from line to line, so that the rules follow from the lines that
are asked for. The stage and its rounds are params that take `output`: snakemake does not compare
such params with those of an earlier run, so that a run can go on in another granularity.
"""

SEGMENT_RULES = segment_rules(
    asked_runs(CATALOGUE, ARGUMENTS),
    EXECUTION.segment_rounds if EXECUTION.granularity == "segment" else 1,
    KEEP,
    files_of_rounds(CATALOGUE),
)

for RULE in SEGMENT_RULES:

    rule:
        name:
            RULE.name
        input:
            lambda w, jobs=RULE.jobs: jobs[w.line].reads,
            line="results/training/{line}/line.yaml",
            # Of each segment that makes some of the files the first output, to wait for. Made round
            # by round they may be younger than this segment's first rounds. Their bytes follow from
            # settings and source, which the params of this rule hold.
            others=ancient(lambda w, jobs=RULE.jobs: jobs[w.line].waits_for),
        output:
            RULE.outputs,
        log:
            f"results/logs/{RULE.first.stage}/{{line}}/{RULE.name}.log",
        wildcard_constraints:
            line=RULE.lines,
        threads: threads
        resources:
            gpu=gpus,
        params:
            source=lambda w, part=RULE.first: source_of(
                line_of(w), part.stage, members=part.members
            ),
            stage=lambda w, output, part=RULE.first: part.stage,
            which=lambda w, output, jobs=RULE.jobs: jobs[w.line].options,
        message:
            f"{RULE.first.about} ({{wildcards.line}})"
        shell:
            "fedstage {params.stage} --log {log} --fingerprint {params.source}"
            " --line {input.line} {params.which}"
