"""One-shot federated learning: all of it reads the same models of clients, trained to the end."""


rule quantised_model:
    input:
        line="results/local_models/{line}/line.yaml",
        model="results/local_models/{line}/{who}.safetensors",
        data=lambda w: graph.data_file(local_line_of(w).data, "train"),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
    output:
        "results/local_models/{line}/quantised/{precision}/{who}.safetensors",
    log:
        "results/logs/quantised_model/{line}/{precision}/{who}.log",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(asked_line_of(w), "quantised_model"),
        quantisation=lambda w: quantisation_of(asked_line_of(w)),
    message:
        "{wildcards.who} is quantised to {wildcards.precision} ({wildcards.line})"
    shell:
        "fedstage quantised_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --quantisation {params.quantisation:q} --model {input.model}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"


rule client_logits:
    input:
        line="results/local_models/{line}/line.yaml",
        model=asked_model,
        data=lambda w: graph.local_images(local_line_of(w), w.images),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: (
            graph.clients_table(local_line_of(w))
            if w.images in ("validation", "aggregator")
            else []
        ),
    output:
        "results/local_models/{line}/logits/{precision}/{who}-{images}.safetensors",
    log:
        "results/logs/client_logits/{line}/{precision}/{who}-{images}.log",
    wildcard_constraints:
        images="[^/]+",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(asked_line_of(w), "client_logits"),
        quantisation=lambda w: quantisation_of(asked_line_of(w)),
    message:
        "logits of {wildcards.who} on {wildcards.images} ({wildcards.line})"
    shell:
        "fedstage client_logits --log {log} --fingerprint {params.source}"
        " --line {input.line} --model {input.model} --quantisation {params.quantisation:q}"
        " --images {wildcards.images}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"


rule aggregator:
    input:
        line="results/aggregators/{line}/line.yaml",
        models=aggregated_models,
        quantised=lambda w: graph.members_quantised(aggregator_of(w)),
        logits=fitted("logits"),
        data=fitted("data"),
        validation_logits=fitted("validation_logits"),
        validation=fitted("validation"),
        clients=lambda w: graph.clients_table(local_line(aggregator_of(w))),
        histogram=lambda w: graph.label_histogram(local_line(aggregator_of(w))),
        info=lambda w: graph.data_file(aggregator_of(w).data, "info"),
    output:
        aggregator="results/aggregators/{line}/aggregator.safetensors",
        rounds="results/aggregators/{line}/rounds.parquet",
    log:
        "results/logs/aggregator/{line}.log",
    threads: lambda w: aggregator_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(aggregator_of(w)),
    params:
        source=lambda w: source_of(aggregator_of(w), "aggregator"),
    message:
        "aggregator {wildcards.line}"
    shell:
        "fedstage aggregator --log {log} --fingerprint {params.source}"
        " --line {input.line} --models {input.models} --quantised {input.quantised}"
        " --logits {input.logits} --data {input.data} --clients {input.clients}"
        " --histogram {input.histogram} --validation-logits {input.validation_logits}"
        " --validation {input.validation} --info {input.info} --output {output.aggregator} --rounds {output.rounds}"


rule one_shot_evaluation:
    input:
        line="results/aggregators/{line}/line.yaml",
        aggregator="results/aggregators/{line}/aggregator.safetensors",
        logits=lambda w: graph.members_logits(aggregator_of(w), w.role),
        data=lambda w: graph.local_images(local_line(aggregator_of(w)), w.role),
        info=lambda w: graph.data_file(aggregator_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line(aggregator_of(w))),
        histogram=lambda w: graph.label_histogram(local_line(aggregator_of(w))),
        rounds="results/aggregators/{line}/rounds.parquet",
    output:
        "results/aggregators/{line}/metrics/{role}.parquet",
    log:
        "results/logs/one_shot_evaluation/{line}/{role}.log",
    threads: lambda w: aggregator_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(aggregator_of(w)),
    params:
        source=lambda w: source_of(aggregator_of(w), "one_shot_evaluation"),
    message:
        "evaluation of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage one_shot_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --role {wildcards.role} --aggregator {input.aggregator}"
        " --logits {input.logits} --data {input.data} --info {input.info}"
        " --clients {input.clients} --histogram {input.histogram} --rounds {input.rounds}"
        " --output {output}"


rule distilled_model:
    input:
        line="results/distilled_models/{line}/line.yaml",
        aggregator=lambda w: graph.aggregator_file(student_of(w)),
        logits=lambda w: graph.members_logits(student_of(w), graph.public_id(student_of(w))),
        start=lambda w: graph.student_start(student_of(w)),
        public=lambda w: graph.public_file(student_of(w)),
        validation=lambda w: graph.server_validation(student_of(w)) or [],
        info=lambda w: graph.data_file(student_of(w).data, "info"),
    output:
        "results/distilled_models/{line}/model.safetensors",
    log:
        "results/logs/distilled_model/{line}.log",
    threads: lambda w: student_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(student_of(w)),
    params:
        source=lambda w: source_of(student_of(w), "distilled_model"),
    message:
        "one-shot distillation {wildcards.line}"
    shell:
        "fedstage distilled_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --aggregator {input.aggregator} --logits {input.logits}"
        " --start {input.start} --public {input.public}"
        " --server-validation {input.validation} --info {input.info} --output {output}"


rule student_evaluation:
    input:
        line="results/distilled_models/{line}/line.yaml",
        student="results/distilled_models/{line}/model.safetensors",
        data=lambda w: graph.local_images(local_line(student_of(w)), w.role),
        info=lambda w: graph.data_file(student_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line(student_of(w))),
        histogram=lambda w: graph.label_histogram(local_line(student_of(w))),
        rounds=lambda w: graph.aggregator_rounds(student_of(w)),
    output:
        "results/distilled_models/{line}/metrics/{role}.parquet",
    log:
        "results/logs/student_evaluation/{line}/{role}.log",
    threads: lambda w: student_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(student_of(w)),
    params:
        source=lambda w: source_of(student_of(w), "one_shot_evaluation"),
    message:
        "evaluation of {wildcards.line} on {wildcards.role} data"
    shell:
        "fedstage one_shot_evaluation --log {log} --fingerprint {params.source}"
        " --line {input.line} --role {wildcards.role} --student {input.student}"
        " --data {input.data} --info {input.info} --clients {input.clients}"
        " --histogram {input.histogram} --rounds {input.rounds} --output {output}"
