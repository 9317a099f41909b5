"""Local training, a job a participant."""

UPDATE = "results/training/{line}/round_{round}/group_{group}/slot_{slot}.safetensors"


rule local_training:
    input:
        line="results/training/{line}/line.yaml",
        data=lambda w: graph.data_file(line_of(w).data, "train"),
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        clients=lambda w: graph.clients_table(line_of(w)),
        participation=lambda w: graph.participation_table(line_of(w), int(w.round)),
        start=previous_model,
        state=previous_states,
    output:
        UPDATE if CATALOGUE.config.keep == "all" else temp(UPDATE),
    log:
        "results/logs/local_training/{line}/round_{round}/group_{group}/slot_{slot}.log",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    params:
        source=lambda w: source_of(line_of(w), "local_training"),
    message:
        "round {wildcards.round}: participant {wildcards.slot} trains ({wildcards.line})"
    shell:
        "fedstage local_training --log {log} --fingerprint {params.source}"
        " --line {input.line} --round {wildcards.round}"
        " --group {wildcards.group} --slot {wildcards.slot} --data {input.data}"
        " --info {input.info} --clients {input.clients} --participation {input.participation}"
        " --start {input.start} --state {input.state} --output {output}"
