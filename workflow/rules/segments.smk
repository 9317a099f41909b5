"""Several rounds in one job, in place of the rules of rounds.

Which rounds make a segment differs from recipe to recipe, so that the rules follow from the recipes that
are asked for.
"""


def make_segment_rule(segment):
    """Declare the rule of segments with the same files, each of its own recipe."""

    def job(wildcards):
        return segment.jobs[wildcards.recipe]

    rule:
        name:
            segment.name
        input:
            lambda w: job(w).reads,
            recipe=local("results/training/{recipe}/recipe.yaml"),
            source=lambda w: [local(path) for path in job(w).sources],
            # Of each segment that makes some of the files the first output, to wait for. Made round
            # by round they may be younger than this segment's first rounds. Their bytes follow from
            # settings and source, which are inputs, too.
            others=ancient(lambda w: job(w).waits_for),
        output:
            segment.outputs,
        log:
            f"results/logs/{segment.first.stage}/{{recipe}}/{segment.first.name}.json",
        wildcard_constraints:
            recipe=segment.recipes,
        threads: threads
        resources:
            gpu=gpus,
        message:
            f"{segment.first.about} ({{wildcards.recipe}})"
        shell:
            segment.shell


for declared in segment_rules(
    RUNS,
    EXECUTION.segment_rounds if EXECUTION.granularity == "segment" else 1,
    CATALOGUE.config.keep,
    files_of_rounds(CATALOGUE),
):
    make_segment_rule(declared)
