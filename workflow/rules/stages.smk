"""The stages of the graph: a rule for each, whose inputs, outputs and command follow from its
declaration in `fedstage.plan`. `fedstage list stages` shows what each makes from what.
"""


def make_rule(stage_rule):
    """Declare the rule of a stage; in a function, for the command is looked up when a job runs."""

    def job(wildcards):
        return job_of(stage_rule, wildcards)

    rule:
        name:
            stage_rule.name
        input:
            unpack(lambda w: inputs_of(job(w))),
        output:
            **{
                name: temp(path) if name in stage_rule.stage.temporary else path
                for name, path in stage_rule.outputs.items()
            },
        log:
            stage_rule.log,
        wildcard_constraints:
            **stage_rule.constraints,
        # What is wrong with data shows in jobs that train nothing, so they come first.
        priority: int(stage_rule.stage.folder.name not in RECIPES)
        threads: lambda w: threads_of_job(job(w))
        resources:
            gpu=lambda w: gpus_of_job(job(w)),
        message:
            stage_rule.message
        shell:
            stage_rule.shell


for declared in stage_rules(FOLDERS, BY_PARTICIPANT):
    make_rule(declared)
