"""Tables, figures and claims of an experiment at a scale."""


rule runs:
    output:
        "results/tables/{experiment}/{scale}.runs.json",
    log:
        "results/logs/runs/{experiment}/{scale}.log",
    localrule: True
    params:
        content=lambda w: as_json(described(w)),
    message:
        "runs of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        WRITE


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
        latex="results/tables/{experiment}/{scale}.tex",
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
        " --latex {output.latex}"


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


rule comparison:
    input:
        runs="results/tables/{experiment}/{scale}.runs.json",
        metrics=of_every_run("metrics"),
    output:
        report(
            "results/figures/{experiment}/{scale}_published.png",
            caption="../report/published.rst",
            category="{experiment}",
            labels={"result": "measured against published", "scale": "{scale}"},
        ),
    log:
        "results/logs/comparison/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("comparison"),
    message:
        "comparison of {wildcards.experiment}, scale {wildcards.scale}, with published numbers"
    shell:
        "fedstage comparison --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --figure {output}"


rule sweep:
    input:
        runs="results/tables/{experiment}/{scale}.runs.json",
        metrics=of_every_run("metrics"),
    output:
        report(
            "results/figures/{experiment}/{scale}_over.png",
            caption="../report/sweep.rst",
            category="{experiment}",
            labels={"result": "accuracy over an axis", "scale": "{scale}"},
        ),
    log:
        "results/logs/sweep/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("sweep"),
    message:
        "accuracy over an axis of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage sweep --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --figure {output}"


rule claim_list:
    output:
        "results/claims/{experiment}/{scale}.claims.json",
    log:
        "results/logs/claim_list/{experiment}/{scale}.log",
    localrule: True
    params:
        content=lambda w: as_json(claimed(w)),
    message:
        "claims on {wildcards.experiment}, for scale {wildcards.scale}"
    shell:
        WRITE


rule claims:
    input:
        runs="results/tables/{experiment}/{scale}.runs.json",
        definitions="results/claims/{experiment}/{scale}.claims.json",
        metrics=of_every_run("metrics"),
        measurements=measurements,
    output:
        csv="results/claims/{experiment}/{scale}.csv",
        parquet="results/claims/{experiment}/{scale}.parquet",
        markdown="results/claims/{experiment}/{scale}.md",
        html=report(
            "results/claims/{experiment}/{scale}.html",
            caption="../report/claims.rst",
            category="{experiment}",
            labels={"result": "claims", "scale": "{scale}"},
        ),
    log:
        "results/logs/claims/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("claims"),
    message:
        "claims on {wildcards.experiment}, judged at scale {wildcards.scale}"
    shell:
        "fedstage claims --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --definitions {input.definitions}"
        " --measurements {input.measurements} --csv {output.csv}"
        " --parquet {output.parquet} --markdown {output.markdown} --html {output.html}"
