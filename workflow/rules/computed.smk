"""What follows from an experiment's definition, and what its jobs recorded."""


rule definition:
    output:
        "results/definitions/{experiment}/{scale}.json",
    log:
        "results/logs/definition/{experiment}/{scale}.log",
    localrule: True
    params:
        content=lambda w: as_json(defined(w)),
    message:
        "definition of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        WRITE


rule properties:
    input:
        definition="results/definitions/{experiment}/{scale}.json",
    output:
        markdown="results/properties/{experiment}/{scale}.md",
        csv=report(
            "results/properties/{experiment}/{scale}.csv",
            caption="../report/properties.rst",
            category="{experiment}",
            labels={"result": "properties", "scale": "{scale}"},
        ),
    log:
        "results/logs/properties/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("properties"),
    message:
        "properties of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage properties --log {log} --fingerprint {params.source}"
        " --definition {input.definition} --markdown {output.markdown} --csv {output.csv}"


rule simulation:
    input:
        definition="results/definitions/{experiment}/{scale}.json",
    output:
        markdown="results/simulation/{experiment}/{scale}.md",
        csv=report(
            "results/simulation/{experiment}/{scale}.csv",
            caption="../report/simulation.rst",
            category="{experiment}",
            labels={"result": "simulated seconds a round", "scale": "{scale}"},
        ),
        jobs="results/simulation/{experiment}/{scale}_jobs.parquet",
        figure=report(
            "results/figures/{experiment}/{scale}_schedule.png",
            caption="../report/simulation.rst",
            category="{experiment}",
            labels={"result": "simulated schedule", "scale": "{scale}"},
        ),
    log:
        "results/logs/simulation/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("simulation"),
    message:
        "simulation of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage simulation --log {log} --fingerprint {params.source}"
        " --definition {input.definition} --markdown {output.markdown} --csv {output.csv}"
        " --jobs {output.jobs} --figure {output.figure}"


# A measurement: the metrics say that the runs are trained, the seconds stand beside their logs.
rule round_times:
    input:
        definition="results/definitions/{experiment}/{scale}.json",
        metrics=timed_metrics,
    output:
        markdown="results/round_times/{experiment}/{scale}.md",
        csv=report(
            "results/round_times/{experiment}/{scale}.csv",
            caption="../report/round_times.rst",
            category="{experiment}",
            labels={"result": "measured seconds of a round", "scale": "{scale}"},
        ),
        parquet="results/round_times/{experiment}/{scale}.parquet",
        by_run="results/round_times/{experiment}/{scale}.runs.parquet",
    log:
        "results/logs/round_times/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("round_times"),
    message:
        "round times of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage round_times --log {log} --fingerprint {params.source}"
        " --definition {input.definition} --markdown {output.markdown} --csv {output.csv}"
        " --parquet {output.parquet} --by-run {output.by_run}"
