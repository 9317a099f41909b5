"""Values that are chosen on validation samples."""


rule choice:
    input:
        validation=lambda w: [
            metrics_of(one.in_role("validation"))
            for one in found("choices", w, "choice").candidates
        ],
        metrics=lambda w: [metrics_of(one) for one in found("choices", w, "choice").candidates],
    output:
        metrics="results/choices/{choice}/metrics.parquet",
        chosen="results/choices/{choice}/chosen.json",
    log:
        "results/logs/choice/{choice}.log",
    params:
        source=stage_fingerprint("choice"),
        values=lambda w: as_json([one.axes for one in found("choices", w, "choice").candidates]),
    message:
        "choice {wildcards.choice}"
    shell:
        "fedstage choice --log {log} --fingerprint {params.source} --values {params.values:q}"
        " --validation {input.validation} --metrics {input.metrics}"
        " --output {output.metrics} --chosen {output.chosen}"
