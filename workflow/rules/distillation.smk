"""Ensembles and their distillation."""


def logits_inputs(wildcards):
    """Return the models whose logits are wanted: w_{t,k}, or the updates of the group."""
    line, round, group = line_of(wildcards), int(wildcards.round), int(wildcards.group)
    if wildcards.members == "clients":
        return graph.updates(line, round, group)
    return graph.aggregated_model(line, round, group)


def logits_images(wildcards):
    """Return the images: of a role, held out, or the training images of another data set."""
    line, images = line_of(wildcards), wildcards.images
    if images in ("test", "validation"):
        return graph.evaluation_data(line, images)
    if images == "held_out":
        return graph.data_file(line.data, "held_out")
    return graph.data_file(found("data", wildcards, "images"), "train")


rule logits:
    input:
        line="results/training/{line}/line.yaml",
        models=logits_inputs,
        data=logits_images,
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        clients=lambda w: (
            graph.clients_table(line_of(w)) if w.images == "validation" else []
        ),
    output:
        f"{ROUND}/logits/{{members}}-{{images}}.safetensors",
    wildcard_constraints:
        images=r"[^/]+",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    log:
        "results/logs/logits/{line}/round_{round}/group_{group}/{members}-{images}.log",
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
        start=lambda w: graph.aggregated_model(
            line_of(w), int(w.round), int(w.group)
        ),
        logits=lambda w: graph.teacher_logits(line_of(w), int(w.round)),
        public=lambda w: graph.public_file(line_of(w)),
        info=lambda w: graph.data_file(line_of(w).data, "info"),
    output:
        f"{ROUND}/distilled.safetensors",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    log:
        "results/logs/distillation/{line}/round_{round}/group_{group}.log",
    message:
        "round {wildcards.round}: group {wildcards.group} is distilled ({wildcards.line})"
    shell:
        "fedstage distillation --log {log} --line {input.line} --start {input.start}"
        " --logits {input.logits} --public {input.public} --info {input.info} --output {output}"
