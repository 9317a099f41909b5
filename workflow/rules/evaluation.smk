"""Evaluation: all rounds of a line in one job; models without federation, of all clients or one."""


rule evaluation:
    input:
        line="results/training/{line}/line.yaml",
        models=evaluated_models,
        data=lambda w: graph.evaluation_data(line_of(w), w.role),
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(line_of(w)),
        histogram=lambda w: graph.label_histogram(line_of(w)),
        participants=evaluated_participants,
    output:
        "results/training/{line}/metrics/{evaluated}-{role}/rounds_{rounds}_every_{every}.parquet",
    log:
        "results/logs/evaluation/{line}/{evaluated}-{role}/rounds_{rounds}_every_{every}.log",
    wildcard_constraints:
        evaluated=r"[\w.]+",
        rounds=r"\d{4}",
        every=r"\d+",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    params:
        source=lambda w: source_of(line_of(w), "evaluation", w.evaluated),
    message:
        "evaluation of {wildcards.evaluated} on {wildcards.role} data, rounds 1 to"
        " {wildcards.rounds} ({wildcards.line})"
    shell:
        "fedstage evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --evaluated {wildcards.evaluated}"
        " --role {wildcards.role} --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram}"
        " --participants {input.participants} --output {output}"


rule local_evaluation:
    input:
        line="results/local_models/{line}/line.yaml",
        models=scored_models,
        data=lambda w: graph.evaluation_data(local_line_of(w), w.role),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
        histogram=lambda w: graph.label_histogram(local_line_of(w)),
    output:
        "results/local_models/{line}/metrics/{precision}/{who}-{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/local_evaluation/{line}/{precision}/{who}-{role}-rounds_{rounds}.log",
    wildcard_constraints:
        who=r"each_client|client_\d+|pooled",
        rounds=r"\d{4}",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(asked_line_of(w), "local_evaluation"),
        quantisation=lambda w: quantisation_of(asked_line_of(w)),
    message:
        "evaluation of {wildcards.who} on {wildcards.role} data in {wildcards.precision}"
        " ({wildcards.line})"
    shell:
        "fedstage local_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --rounds {wildcards.rounds} --role {wildcards.role}"
        " --who {wildcards.who} --models {input.models} --quantisation {params.quantisation:q}"
        " --data {input.data} --info {input.info} --clients {input.clients}"
        " --histogram {input.histogram} --output {output}"
