"""Evaluation: all rounds of a line in one job."""


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
        models=lambda w: graph.local_models(local_line_of(w)),
        data=lambda w: graph.evaluation_data(local_line_of(w), w.role),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
        histogram=lambda w: graph.label_histogram(local_line_of(w)),
    output:
        "results/local_models/{line}/metrics/{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/local_evaluation/{line}/{role}-rounds_{rounds}.log",
    wildcard_constraints:
        rounds=r"\d{4}",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(local_line_of(w), "local_evaluation"),
    message:
        "evaluation of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage local_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --rounds {wildcards.rounds}"
        " --role {wildcards.role} --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram} --output {output}"


rule quantised_evaluation:
    input:
        line="results/local_models/{line}/line.yaml",
        models=lambda w: graph.asked_models(asked_line_of(w)),
        data=lambda w: graph.evaluation_data(local_line_of(w), w.role),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
        histogram=lambda w: graph.label_histogram(local_line_of(w)),
    output:
        "results/local_models/{line}/metrics/{precision}/{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/quantised_evaluation/{line}/{precision}/{role}-rounds_{rounds}.log",
    wildcard_constraints:
        rounds=r"\d{4}",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(asked_line_of(w), "local_evaluation"),
        quantisation=lambda w: quantisation_of(asked_line_of(w)),
    message:
        "evaluation of {wildcards.line} in {wildcards.precision} on {wildcards.role} data"
    shell:
        "fedstage local_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --rounds {wildcards.rounds}"
        " --role {wildcards.role} --models {input.models}"
        " --quantisation {params.quantisation:q} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram} --output {output}"


rule client_evaluation:
    input:
        line="results/local_models/{line}/line.yaml",
        models="results/local_models/{line}/client_{client}.safetensors",
        data=lambda w: graph.evaluation_data(local_line_of(w), w.role),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
        histogram=lambda w: graph.label_histogram(local_line_of(w)),
    output:
        "results/local_models/{line}/metrics/client_{client}-{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/local_evaluation/{line}/client_{client}-{role}-rounds_{rounds}.log",
    wildcard_constraints:
        client=r"\d+",
        rounds=r"\d{4}",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(local_line_of(w), "local_evaluation"),
    message:
        "evaluation of client {wildcards.client} of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage local_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --rounds {wildcards.rounds} --client {wildcards.client}"
        " --role {wildcards.role} --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram} --output {output}"
