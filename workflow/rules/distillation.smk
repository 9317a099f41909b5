"""Distillation of a student at the end of a round."""


rule distillation:
    input:
        line="results/training/{line}/line.yaml",
        start=lambda w: graph.aggregated_model(line_of(w), int(w.round), int(w.group)),
        logits=lambda w: graph.teacher_logits(line_of(w), int(w.round)),
        judged=lambda w: graph.judged_logits(line_of(w), int(w.round)),
        updates=lambda w: graph.fused_updates(line_of(w), int(w.round), int(w.group)),
        public=lambda w: graph.public_file(line_of(w)),
        validation=lambda w: graph.server_validation(line_of(w)) or [],
        info=lambda w: graph.data_file(line_of(w).data, "info"),
    output:
        f"{ROUND}/distilled.safetensors",
    log:
        "results/logs/distillation/{line}/round_{round}/group_{group}.log",
    threads: lambda w: line_of(w).numerics.threads
    resources:
        gpu=lambda w: gpus(line_of(w)),
    params:
        source=lambda w: source_of(line_of(w), "distillation"),
    message:
        "round {wildcards.round}: group {wildcards.group} is distilled ({wildcards.line})"
    shell:
        "fedstage distillation --log {log} --fingerprint {params.source}"
        " --line {input.line} --start {input.start} --logits {input.logits}"
        " --judged {input.judged} --updates {input.updates} --public {input.public}"
        " --server-validation {input.validation} --info {input.info} --output {output}"
