"""Tables, figures, claims and whatever else is made of the runs of an experiment at a scale.

A rule for each stage of results. Its options follow from its declaration in `fedstage.plan.stages`;
here is what files these are.
"""

AT = "{experiment}/{scale}"
CLAIMS = f"results/descriptions/{AT}.claims.json"
METRICS = {"metrics": of_runs("metrics", "over_rounds")}
SCORES = {"scores": result_file("run_scores", "scores")}  # made of the metrics
PARTITIONS = {"partitions": of_runs("partition"), "infos": of_runs("info")}

# What a stage reads besides the description of its runs.
READS = {
    "run_scores": METRICS | {"participants": participants},
    "tables": SCORES,
    "figures": SCORES | PARTITIONS,
    "comparison": SCORES,
    "sweep": SCORES,
    "claims": SCORES | {"definitions": CLAIMS, "measurements": measurements},
    # The records that it shows are of the jobs that made the metrics.
    "report": SCORES
    | {
        "definitions": claims_of,
        "measurements": lambda w: measurements(w) if claims_of(w) else [],
        "documents": lambda w: reported(CATALOGUE, w.experiment, w.scale),
    },
    "communication": METRICS
    | {
        "validation": of_runs("validation"),
        "files": lambda w: files_of(CATALOGUE, w.experiment, w.scale),
    },
    # Its seconds, as in round_times, stand in the records of the jobs behind the metrics.
    "costs": {
        "metrics": of_runs("metrics"),
        "participants": participants,
        "communicated": f"results/communication/{AT}.runs.parquet",
    },
    "properties": {"communicated": lambda w: measurements(w, ["communication"])},
    "round_times": {"metrics": of_runs("metrics")},
    "retention_summary": {"measures": retention},
    "clients": {"measures": of_runs("clients"), "infos": of_runs("info")},
}
# Whatever reads files of runs may ask which of its candidates a run has chosen.
CHOSEN = {"chosen": of_runs("chosen")}
READS = {name: files | CHOSEN for name, files in READS.items()}

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
            **READS.get(stage.name, {}),
            runs=f"results/descriptions/{AT}.runs.json",
        output:
            **dict(outputs_of(stage)),
        log:
            f"results/logs/{stage.name}/{AT}.log",
        params:
            source=stage_fingerprint(stage.name),
            sources=lambda w, input, output: sources(input),
        message:
            f"{stage.name} of {{wildcards.experiment}}, scale {{wildcards.scale}}"
        shell:
            command(stage)


for declared in RESULTS:
    make_result_rule(declared)
