"""What is known when the Snakefile is parsed, as files; and which of compared recipes is chosen."""

DESCRIPTION = "results/descriptions/{experiment}/{scale}.{what}.json"


# `printf` is a part of the shell: the command may be longer than a program's argument may be, and no
# other snakemake is started, as for `run`.
rule description:
    output:
        DESCRIPTION,
    log:
        "results/logs/description/{experiment}/{scale}.{what}.log",
    wildcard_constraints:
        what="runs|claims",
    localrule: True
    params:
        content=lambda w: as_json(described(w, w.what)),
    message:
        "{wildcards.what} of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "printf %s {params.content:q} > {output} 2> {log}"


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
        sources=lambda w, input, output: sources(input),
        values=lambda w: as_json([one.axes for one in found("choices", w.choice).candidates]),
    message:
        "choice {wildcards.choice}"
    shell:
        "fedstage choice --log {log} --fingerprint {params.source} {params.sources} --values {params.values:q}"
        " --validation {input.validation} --metrics {input.metrics}"
        " --output {output.metrics} --chosen {output.chosen}"
