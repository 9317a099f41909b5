"""Models that are trained without federation: each client alone, or all data pooled."""


rule local_model:
    input:
        line="results/local_models/{line}/line.yaml",
        data=lambda w: graph.data_file(local_line_of(w).data, "train"),
        info=lambda w: graph.data_file(local_line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(local_line_of(w)),
        start=initial_weights,
    output:
        "results/local_models/{line}/{who}.safetensors",
    log:
        "results/logs/local_model/{line}/{who}.log",
    threads: lambda w: local_line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(local_line_of(w)),
    params:
        source=lambda w: source_of(local_line_of(w), "local_model"),
        client=lambda w: "" if w.who == "pooled" else local_client(w),
    message:
        "{wildcards.who} trains without federation ({wildcards.line})"
    shell:
        "fedstage local_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --client {params.client}"
        " --data {input.data} --info {input.info} --clients {input.clients}"
        " --start {input.start} --output {output}"
