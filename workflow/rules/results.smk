"""Tables, figures, claims and whatever else is made of the runs of an experiment at a scale."""

AT = "{experiment}/{scale}"


# What is known when the Snakefile is parsed. `printf` is a part of the shell: the command may be
# longer than a program's argument may be, and no other snakemake is started, as for `run`.
rule description:
    output:
        f"results/descriptions/{AT}.{{what}}.json",
    log:
        f"results/logs/description/{AT}.{{what}}.log",
    wildcard_constraints:
        what="runs|claims|traces",
    localrule: True
    params:
        content=lambda w: as_json(sealed(described(w, w.what), description_file(w))),
    message:
        "{wildcards.what} of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "printf %s {params.content:q} > {output} 2> {log}"


rule tables:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
        participants=lambda w: dropping_of(CATALOGUE, w.experiment, w.scale),
    output:
        csv=f"results/tables/{AT}.csv",
        parquet=f"results/tables/{AT}.parquet",
        markdown=f"results/tables/{AT}.md",
        html=shown(f"results/tables/{AT}.html", "table", "table"),
        latex=f"results/tables/{AT}.tex",
    log:
        f"results/logs/tables/{AT}.log",
    params:
        source=stage_fingerprint("tables"),
    message:
        "table of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["tables"])


rule figures:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
        partitions=of_runs("partition"),
        infos=of_runs("info"),
    output:
        accuracy=drawn("accuracy", "accuracy", "accuracy over rounds"),
        partition=drawn("partition", "partition", "partition"),
        samples=f"results/figures/{AT}_partition.csv",
    log:
        f"results/logs/figures/{AT}.log",
    params:
        source=stage_fingerprint("figures"),
    message:
        "figures of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["figures"])


rule comparison:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
    output:
        figure=drawn("published", "published", "measured beside published"),
    log:
        f"results/logs/comparison/{AT}.log",
    params:
        source=stage_fingerprint("comparison"),
    message:
        "comparison of {wildcards.experiment}, scale {wildcards.scale}, with published numbers"
    shell:
        command(STAGES["comparison"])


rule sweep:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
    output:
        figure=drawn("over", "sweep", "accuracy over an axis"),
    log:
        f"results/logs/sweep/{AT}.log",
    params:
        source=stage_fingerprint("sweep"),
    message:
        "accuracy over an axis of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["sweep"])


rule claims:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        definitions=f"results/descriptions/{AT}.claims.json",
        metrics=of_runs("metrics", "over_rounds"),
        measurements=measurements,
    output:
        csv=f"results/claims/{AT}.csv",
        parquet=f"results/claims/{AT}.parquet",
        markdown=f"results/claims/{AT}.md",
        html=shown(f"results/claims/{AT}.html", "claims", "claims"),
    log:
        f"results/logs/claims/{AT}.log",
    params:
        source=stage_fingerprint("claims"),
    message:
        "claims on {wildcards.experiment}, judged at scale {wildcards.scale}"
    shell:
        command(STAGES["claims"])


# The records that it shows are those of the jobs that made the metrics.
rule report:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
        partitions=of_runs("partition"),
        infos=of_runs("info"),
        participants=lambda w: dropping_of(CATALOGUE, w.experiment, w.scale),
        definitions=claims_of,
        measurements=lambda w: measurements(w) if claims_of(w) else [],
    output:
        output=f"results/report/{AT}.html",
    log:
        f"results/logs/report/{AT}.log",
    params:
        source=stage_fingerprint("report"),
    message:
        "report on {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["report"])


rule communication:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics", "over_rounds"),
        validation=lambda w: validation_of(CATALOGUE, w.experiment, w.scale),
        files=lambda w: files_of(CATALOGUE, w.experiment, w.scale),
    output:
        csv=f"results/communication/{AT}.csv",
        parquet=f"results/communication/{AT}.parquet",
        by_run=f"results/communication/{AT}.runs.parquet",
        markdown=f"results/communication/{AT}.md",
        html=shown(f"results/communication/{AT}.html", "communication", "communication"),
        figure=drawn("communication", "accuracy_of_bytes", "accuracy against communication"),
    log:
        f"results/logs/communication/{AT}.log",
    params:
        source=stage_fingerprint("communication"),
    message:
        "communication of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["communication"])


# Its seconds stand in the records of the jobs behind the metrics.
rule costs:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics"),
        communicated=f"results/communication/{AT}.runs.parquet",
    output:
        csv=f"results/costs/{AT}.csv",
        parquet=f"results/costs/{AT}.parquet",
        markdown=f"results/costs/{AT}.md",
        html=shown(f"results/costs/{AT}.html", "costs", "what methods reach and cost"),
        figure=drawn("costs", "costs", "accuracy against bytes at the end"),
    log:
        f"results/logs/costs/{AT}.log",
    params:
        source=stage_fingerprint("costs"),
    message:
        "costs of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["costs"])


rule properties:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
    output:
        markdown=f"results/properties/{AT}.md",
        csv=shown(f"results/properties/{AT}.csv", "properties", "properties"),
    log:
        f"results/logs/properties/{AT}.log",
    params:
        source=stage_fingerprint("properties"),
    message:
        "properties of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["properties"])


rule simulation:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
    output:
        markdown=f"results/simulation/{AT}.md",
        csv=shown(f"results/simulation/{AT}.csv", "simulation", "simulated seconds a round"),
        jobs=f"results/simulation/{AT}_jobs.parquet",
        figure=drawn("schedule", "schedule", "simulated schedule"),
    log:
        f"results/logs/simulation/{AT}.log",
    params:
        source=stage_fingerprint("simulation"),
    message:
        "simulation of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["simulation"])


# A measurement: the metrics say that the runs are trained, the seconds stand beside their logs.
rule round_times:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        metrics=of_runs("metrics"),
    output:
        markdown=f"results/round_times/{AT}.md",
        csv=shown(f"results/round_times/{AT}.csv", "round_times", "measured seconds of a round"),
        parquet=f"results/round_times/{AT}.parquet",
        by_run=f"results/round_times/{AT}.runs.parquet",
    log:
        f"results/logs/round_times/{AT}.log",
    params:
        source=stage_fingerprint("round_times"),
    message:
        "round times of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["round_times"])


rule retention_summary:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        measures=lambda w: retention_of(CATALOGUE, w.experiment, w.scale),
    output:
        csv=f"results/retention/{AT}.csv",
        parquet=f"results/retention/{AT}.parquet",
        by_run=f"results/retention/{AT}.runs.parquet",
        overlap=f"results/retention/{AT}.overlap.csv",
        markdown=f"results/retention/{AT}.md",
        html=shown(f"results/retention/{AT}.html", "retention", "what is forgotten"),
        curves=drawn("retention", "forgetting_over_rounds", "what is forgotten, over rounds"),
        venn=drawn("venn", "venn", "lost, gained and retained samples"),
    log:
        f"results/logs/retention_summary/{AT}.log",
    params:
        source=stage_fingerprint("retention_summary"),
    message:
        "what is forgotten in {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["retention_summary"])


rule clients:
    input:
        runs=f"results/descriptions/{AT}.runs.json",
        measures=lambda w: clients_of(CATALOGUE, w.experiment, w.scale),
        infos=of_runs("info"),
    output:
        csv=f"results/clients/{AT}.csv",
        markdown=f"results/clients/{AT}.md",
    log:
        f"results/logs/clients/{AT}.log",
    params:
        source=stage_fingerprint("clients"),
    message:
        "accuracy by client and class of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["clients"])


rule forgetting:
    input:
        traces=f"results/descriptions/{AT}.traces.json",
    output:
        markdown=f"results/forgetting/{AT}.md",
        csv=shown(f"results/forgetting/{AT}.csv", "forgetting", "forgotten clients"),
    log:
        f"results/logs/forgetting/{AT}.log",
    params:
        source=stage_fingerprint("forgetting"),
    message:
        "forgotten clients of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        command(STAGES["forgetting"])
