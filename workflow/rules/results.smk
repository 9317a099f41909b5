"""Tables and figures of an experiment at a scale."""


rule runs:
    output:
        "results/tables/{experiment}/{scale}.runs.json",
    log:
        "results/logs/runs/{experiment}/{scale}.log",
    localrule: True
    params:
        runs=lambda w: as_json(described(w)),
    message:
        "runs of {wildcards.experiment}, scale {wildcards.scale}"
    run:
        Path(output[0]).write_text(params.runs)


rule tables:
    input:
        runs="results/tables/{experiment}/{scale}.runs.json",
        metrics=of_every_run("metrics"),
    output:
        csv="results/tables/{experiment}/{scale}.csv",
        parquet="results/tables/{experiment}/{scale}.parquet",
        markdown="results/tables/{experiment}/{scale}.md",
        html=report(
            "results/tables/{experiment}/{scale}.html",
            caption="../report/table.rst",
            category="{experiment}",
            labels={"result": "table", "scale": "{scale}"},
        ),
    log:
        "results/logs/tables/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("tables"),
    message:
        "table of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage tables --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --csv {output.csv}"
        " --parquet {output.parquet} --markdown {output.markdown} --html {output.html}"


rule figures:
    input:
        runs="results/tables/{experiment}/{scale}.runs.json",
        metrics=of_every_run("metrics"),
        partitions=of_every_run("partition"),
    output:
        accuracy=report(
            "results/figures/{experiment}/{scale}_accuracy.png",
            caption="../report/accuracy.rst",
            category="{experiment}",
            labels={"result": "accuracy over rounds", "scale": "{scale}"},
        ),
        partition=report(
            "results/figures/{experiment}/{scale}_partition.png",
            caption="../report/partition.rst",
            category="{experiment}",
            labels={"result": "partition", "scale": "{scale}"},
        ),
    log:
        "results/logs/figures/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("figures"),
    message:
        "figures of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage figures --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --accuracy {output.accuracy}"
        " --partition {output.partition}"
