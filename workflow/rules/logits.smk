"""Logits of ensemble members: read by distillation, and by the evaluation of ensembles."""


rule logits:
    input:
        line="results/training/{line}/line.yaml",
        models=lambda w: member_models(w).models,
        aggregated=lambda w: member_models(w).aggregated or [],
        start=lambda w: member_models(w).start or [],
        data=logits_images,
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        clients=lambda w: (graph.clients_table(line_of(w)) if w.images == "validation" else []),
    output:
        f"{ROUND}/logits/{{members}}-{{images}}.safetensors",
    log:
        "results/logs/logits/{line}/round_{round}/group_{group}/{members}-{images}.log",
    wildcard_constraints:
        images=IMAGES,
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    params:
        source=lambda w: source_of(line_of(w), "logits", members=w.members),
    message:
        "round {wildcards.round}: logits of {wildcards.members}, group {wildcards.group}"
        " ({wildcards.line})"
    shell:
        "fedstage logits --log {log} --fingerprint {params.source}"
        " --line {input.line} --members {wildcards.members}"
        " --models {input.models} --aggregated {input.aggregated} --start {input.start}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"
