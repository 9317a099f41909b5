"""Recipes: their settings as a file, and which of the compared ones is chosen."""


rule recipe:
    output:
        "results/{folder}/{recipe}/recipe.yaml",
    log:
        "results/logs/recipe/{folder}/{recipe}.log",
    localrule: True
    params:
        source=stage_fingerprint("recipe"),
        settings=lambda w: as_json(canonical(new_recipe(w))),
    message:
        "recipe {wildcards.recipe}"
    shell:
        "fedstage recipe --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"


rule choice:
    input:
        validation=lambda w: [metrics_of(one) for one in found("choices", w.choice).compared],
        metrics=lambda w: [metrics_of(one) for one in found("choices", w.choice).candidates],
    output:
        metrics="results/choices/{choice}/metrics.parquet",
        chosen="results/choices/{choice}/chosen.json",
    log:
        "results/logs/choice/{choice}.log",
    params:
        source=stage_fingerprint("choice"),
        values=lambda w: as_json([one.axes for one in found("choices", w.choice).candidates]),
    message:
        "choice {wildcards.choice}"
    shell:
        "fedstage choice --log {log} --fingerprint {params.source} --values {params.values:q}"
        " --validation {input.validation} --metrics {input.metrics}"
        " --output {output.metrics} --chosen {output.chosen}"
