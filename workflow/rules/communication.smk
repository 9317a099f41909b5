"""What a client sends and receives, phase by phase, and accuracy against it."""


rule communication_runs:
    output:
        "results/communication/{experiment}/{scale}.runs.json",
    log:
        "results/logs/communication_runs/{experiment}/{scale}.log",
    localrule: True
    params:
        content=lambda w: as_json(communicated(w)),
    message:
        "runs of {wildcards.experiment}, scale {wildcards.scale}, and what they communicate"
    shell:
        WRITE


rule communication:
    input:
        runs="results/communication/{experiment}/{scale}.runs.json",
        metrics=of_every_run("metrics"),
        validation=lambda w: validation_of(CATALOGUE, *known_place(w)),
        files=lambda w: files_of(CATALOGUE, *known_place(w)),
    output:
        csv="results/communication/{experiment}/{scale}.csv",
        parquet="results/communication/{experiment}/{scale}.parquet",
        by_run="results/communication/{experiment}/{scale}.runs.parquet",
        markdown="results/communication/{experiment}/{scale}.md",
        html=report(
            "results/communication/{experiment}/{scale}.html",
            caption="../report/communication.rst",
            category="{experiment}",
            labels={"result": "communication", "scale": "{scale}"},
        ),
        figure=report(
            "results/figures/{experiment}/{scale}_communication.png",
            caption="../report/communication.rst",
            category="{experiment}",
            labels={"result": "accuracy against communication", "scale": "{scale}"},
        ),
    log:
        "results/logs/communication/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("communication"),
    message:
        "communication of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage communication --log {log} --fingerprint {params.source}"
        " --runs {input.runs} --csv {output.csv} --parquet {output.parquet}"
        " --by-run {output.by_run} --markdown {output.markdown} --html {output.html} --figure {output.figure}"
