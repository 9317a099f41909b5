"""Ensembles and their distillation."""


rule logits:
    input:
        line="results/training/{line}/line.yaml",
        models=logits_inputs,
        data=logits_images,
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        clients=lambda w: (graph.clients_table(line_of(w)) if w.images == "validation" else []),
    output:
        f"{ROUND}/logits/{{members}}-{{images}}.safetensors",
    log:
        "results/logs/logits/{line}/round_{round}/group_{group}/{members}-{images}.log",
    wildcard_constraints:
        images=r"[^/]+",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    message:
        "round {wildcards.round}: logits of {wildcards.members}, group {wildcards.group}"
        " ({wildcards.line})"
    shell:
        "fedstage logits --log {log} --line {input.line} --members {wildcards.members}"
        " --models {input.models} --data {input.data} --info {input.info}"
        " --clients {input.clients} --output {output}"


rule distillation:
    input:
        line="results/training/{line}/line.yaml",
        start=lambda w: graph.aggregated_model(line_of(w), int(w.round), int(w.group)),
        logits=lambda w: graph.teacher_logits(line_of(w), int(w.round)),
        public=lambda w: graph.public_file(line_of(w)),
        info=lambda w: graph.data_file(line_of(w).data, "info"),
    output:
        f"{ROUND}/distilled.safetensors",
    log:
        "results/logs/distillation/{line}/round_{round}/group_{group}.log",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    message:
        "round {wildcards.round}: group {wildcards.group} is distilled ({wildcards.line})"
    shell:
        "fedstage distillation --log {log} --line {input.line} --start {input.start}"
        " --logits {input.logits} --public {input.public} --info {input.info} --output {output}"
