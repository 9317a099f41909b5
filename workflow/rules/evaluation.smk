"""Metrics of what was trained, and choices that are made by them on validation samples."""


rule evaluation:
    input:
        unpack(
            lambda w: scores.EVALUATION.job(
                line_of(w), w.evaluated, w.role, int(w.rounds), int(w.every)
            ).inputs
        ),
    output:
        "results/training/{line}/metrics/{evaluated}-{role}/rounds_{rounds}_every_{every}.parquet",
    log:
        "results/logs/evaluation/{line}/{evaluated}-{role}/rounds_{rounds}_every_{every}.log",
    wildcard_constraints:
        evaluated=r"[\w.=]+",
        rounds=r"\d{4}",
        every=r"\d+",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=lambda w: source_of(line_of(w), "evaluation", w.evaluated),
        rounds=lambda w: evaluated_rounds(int(w.rounds), int(w.every)),
    message:
        "evaluation of {wildcards.evaluated} on {wildcards.role} data, rounds 1 to"
        " {wildcards.rounds} ({wildcards.line})"
    shell:
        "fedstage evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --evaluated {wildcards.evaluated}"
        " --role {wildcards.role} --rounds {params.rounds}"
        " --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram}"
        " --participants {input.participants} --output {output}"


rule retention:
    input:
        unpack(lambda w: scores.RETENTION.job(line_of(w), int(w.rounds)).inputs),
    output:
        measures="results/training/{line}/metrics/retention/rounds_{rounds}.parquet",
        right="results/training/{line}/metrics/retention/rounds_{rounds}.safetensors",
    log:
        "results/logs/retention/{line}/rounds_{rounds}.log",
    wildcard_constraints:
        rounds=r"\d{4}",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("retention"),
    message:
        "what is forgotten from round to round, rounds 1 to {wildcards.rounds} ({wildcards.line})"
    shell:
        "fedstage retention --log {log} --fingerprint {params.source}"
        " --line {input.line} --models {input.models} --data {input.data} --test {input.test}"
        " --info {input.info} --clients {input.clients} --participants {input.participants}"
        " --output {output.measures} --right {output.right}"


rule client_accuracy:
    input:
        unpack(lambda w: scores.CLIENT_ACCURACY.job(line_of(w), int(w.rounds)).inputs),
    output:
        "results/training/{line}/metrics/clients/rounds_{rounds}.parquet",
    log:
        "results/logs/client_accuracy/{line}/rounds_{rounds}.log",
    wildcard_constraints:
        rounds=r"\d{4}",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("client_accuracy"),
    message:
        "accuracy by client and class after round {wildcards.rounds} ({wildcards.line})"
    shell:
        "fedstage client_accuracy --log {log} --fingerprint {params.source}"
        " --line {input.line} --model {input.model} --data {input.data} --test {input.test}"
        " --info {input.info} --clients {input.clients} --histogram {input.histogram}"
        " --output {output}"


rule local_evaluation:
    input:
        unpack(lambda w: explained(one_shot_edges.local_evaluation, precise_line(w), w.who, w.role)),
    output:
        "results/local_models/{line}/metrics/{precision}/{who}-{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/local_evaluation/{line}/{precision}/{who}-{role}-rounds_{rounds}.log",
    wildcard_constraints:
        who=r"each_client|client_\d+|pooled|core",
        rounds=r"\d{4}",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=lambda w: source_of(precise_line(w), "local_evaluation"),
        quantisation=quantisation,
    message:
        "evaluation of {wildcards.who} on {wildcards.role} data in {wildcards.precision}"
        " ({wildcards.line})"
    shell:
        "fedstage local_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --rounds {wildcards.rounds} --role {wildcards.role}"
        " --who {wildcards.who} --models {input.models} --quantisation {params.quantisation:q}"
        " --data {input.data} --info {input.info} --clients {input.clients}"
        " --histogram {input.histogram} --output {output}"


rule one_shot_evaluation:
    input:
        unpack(
            lambda w: one_shot.EVALUATIONS[w.folder == "distilled_models"]
            .job(line_of(w), w.role)
            .inputs
        ),
    output:
        metrics="results/{folder}/{line}/metrics/{role}.parquet",
        over_rounds="results/{folder}/{line}/metrics/{role}_over_rounds.parquet",
    log:
        "results/logs/one_shot_evaluation/{folder}/{line}/{role}.log",
    wildcard_constraints:
        folder="aggregators|distilled_models",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("one_shot_evaluation"),
    message:
        "evaluation of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage one_shot_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --role {wildcards.role} --aggregator {input.aggregator}"
        " --snapshots {input.snapshots} --logits {input.logits} --student {input.student}"
        " --data {input.data}"
        " --info {input.info} --clients {input.clients} --histogram {input.histogram}"
        " --rounds {input.rounds} --output {output.metrics} --over-rounds {output.over_rounds}"


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
