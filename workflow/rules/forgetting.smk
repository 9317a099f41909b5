"""Where clients are that an aggregator has forgotten."""


rule traces:
    output:
        "results/forgetting/{experiment}/{scale}.json",
    log:
        "results/logs/traces/{experiment}/{scale}.log",
    localrule: True
    params:
        traces=lambda w: as_json(traced(w)),
    message:
        "traces of forgotten clients, {wildcards.experiment}, scale {wildcards.scale}"
    run:
        Path(output[0]).write_text(params.traces)


rule forgetting:
    input:
        traces="results/forgetting/{experiment}/{scale}.json",
    output:
        markdown="results/forgetting/{experiment}/{scale}.md",
        csv=report(
            "results/forgetting/{experiment}/{scale}.csv",
            caption="../report/forgetting.rst",
            category="{experiment}",
            labels={"result": "forgotten clients", "scale": "{scale}"},
        ),
    log:
        "results/logs/forgetting/{experiment}/{scale}.log",
    params:
        source=stage_fingerprint("forgetting"),
    message:
        "forgotten clients of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage forgetting --log {log} --fingerprint {params.source}"
        " --traces {input.traces} --markdown {output.markdown} --csv {output.csv}"
