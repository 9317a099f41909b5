"""Evaluation: all rounds of a line in one job."""


def evaluated_rounds_of(wildcards):
    return graph.evaluated_rounds(int(wildcards.rounds), int(wildcards.every))


def evaluated_models(wildcards):
    """Return the global models w*_{t,0}, or the logits of the ensembles' members."""
    line, rounds = line_of(wildcards), evaluated_rounds_of(wildcards)
    if wildcards.evaluated == "global_model":
        return [graph.global_model(line, round, 0) for round in rounds]
    ensemble = parse_evaluated(wildcards.evaluated)
    logits = (
        path
        for round in rounds
        for path in graph.member_logits(line, round, ensemble, wildcards.role)
    )
    return list(dict.fromkeys(logits))


def evaluated_participants(wildcards):
    line = line_of(wildcards)
    return [
        graph.participants_table(line, round, group)
        for round in evaluated_rounds_of(wildcards)
        for group in range(line.global_models)
    ]


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
    wildcard_constraints:
        evaluated=r"\w+",
        rounds=r"\d{4}",
        every=r"\d+",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    log:
        "results/logs/evaluation/{line}/{evaluated}-{role}/rounds_{rounds}_every_{every}.log",
    message:
        "evaluation of {wildcards.evaluated} on {wildcards.role} data, rounds 1 to"
        " {wildcards.rounds} ({wildcards.line})"
    shell:
        "fedstage evaluation --log {log} --line {input.line} --evaluated {wildcards.evaluated}"
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
    wildcard_constraints:
        rounds=r"\d{4}",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    log:
        "results/logs/local_evaluation/{line}/{role}-rounds_{rounds}.log",
    message:
        "evaluation of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage local_evaluation --log {log} --line {input.line} --rounds {wildcards.rounds}"
        " --role {wildcards.role} --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram} --output {output}"
