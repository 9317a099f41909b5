"""Tables, figures, claims and whatever else is made of the runs of an experiment at a scale.

A rule for each stage of results. What its command reads and makes follows from its declaration in
`fedstage.plan.stages`; here is what it reads in addition, by the descriptions of the runs.
"""

METRICS = {"metrics": of_runs("metrics", "over_rounds")}
READS = {
    "run_scores": METRICS | {"participants": participants},
    "figures": {"partitions": of_runs("partition"), "infos": of_runs("info")},
    "communication": METRICS
    | {
        "validation": of_runs("validation"),
        "files": lambda w: files_of(CATALOGUE, w.experiment, w.scale),
    },
    # Its seconds, as in round_times, stand in the records of the jobs behind the metrics.
    "costs": {"metrics": of_runs("metrics"), "participants": participants},
    "round_times": {"metrics": of_runs("metrics")},
    "retention_summary": {"measures": retention},
    "clients": {"measures": of_runs("clients"), "infos": of_runs("info")},
}
# Whatever reads files of runs may ask which of its candidates a run has chosen.
CHOSEN = {"chosen": of_runs("chosen")}

# What the report shows, by stage and option: the caption, and what it is called.
SHOWN = {
    ("tables", "html"): ("table", "table"),
    ("claims", "html"): ("claims", "claims"),
    ("communication", "html"): ("communication", "communication"),
    ("costs", "html"): ("costs", "what methods reach and cost"),
    ("properties", "csv"): ("properties", "properties"),
    ("round_times", "csv"): ("round_times", "measured seconds of a round"),
    ("retention_summary", "html"): ("retention", "what is forgotten"),
    ("figures", "accuracy"): ("accuracy", "accuracy over rounds"),
    ("figures", "partition"): ("partition", "partition"),
    ("comparison", "figure"): ("published", "measured beside published"),
    ("sweep", "figure"): ("sweep", "accuracy over an axis"),
    ("communication", "figure"): ("accuracy_of_bytes", "accuracy against communication"),
    ("costs", "figure"): ("costs", "accuracy against bytes at the end"),
    ("simulation", "figure"): ("schedule", "schedule"),
    ("retention_summary", "curves"): ("forgetting_curves", "what is forgotten, over rounds"),
}


def outputs_of(stage):
    """Yield each option with its file, or its files of a figure; the report shows the first."""
    for option, path in stage.outputs.items():
        first, *others = files_at(path)
        if (stage.name, option) in SHOWN:
            caption, result = SHOWN[stage.name, option]
            first = report(
                first,
                caption=f"../report/{caption}.rst",
                category="{experiment}",
                labels={"result": result, "scale": "{scale}"},
            )
        yield option, [first, *others]


def make_result_rule(stage):
    """Declare the rule of a stage of results."""

    rule:
        name:
            stage.name
        input:
            unpack(reads_of(stage.name)),
            **READS.get(stage.name, {}),
            **CHOSEN,
        output:
            **dict(outputs_of(stage)),
        log:
            f"results/logs/{stage.name}/{{experiment}}/{{scale}}.log",
        message:
            f"{stage.name} of {{wildcards.experiment}}, scale {{wildcards.scale}}"
        shell:
            f"fedstage run {stage.name} {{input.runs}}"


for declared in RESULTS:
    make_result_rule(declared)
