"""Rounds of federated training, a job for each participant and step: see `fedstage.plan.training`.

With granularity `segment`, the rules of segments make these files.
"""


def threads_of_aggregation(wildcards, input):
    return threads(wildcards, input) if re_estimates(config_of(input)) else 1


def gpus_of_aggregation(wildcards, input):
    return gpus(wildcards, input) if re_estimates(config_of(input)) else 0


rule local_training:
    """Train a participant on its client's samples, from its group's global model of the round before."""
    input:
        unpack(reads("local_training")),
    output:
        outputs=GROUP + "participant_{participant}.safetensors",
    log:
        "results/logs/local_training/" + AT + "participant_{participant}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "local_training: round {wildcards.round}, group {wildcards.group},"
        " participant {wildcards.participant} ({wildcards.recipe})"
    shell:
        "fedstage run local_training {input.recipe} round={wildcards.round}"
        " group={wildcards.group} participant={wildcards.participant}"


rule advertise:
    """Draw a participant's keys for secure aggregation."""
    input:
        unpack(reads("advertise")),
    output:
        public=GROUP + "secure/participant_{participant}_public_keys.safetensors",
        private=temp(GROUP + "secure/participant_{participant}_private.safetensors"),
    log:
        "results/logs/advertise/" + AT + "secure/participant_{participant}_public_keys.json",
    message:
        "advertise: round {wildcards.round}, group {wildcards.group},"
        " participant {wildcards.participant} ({wildcards.recipe})"
    shell:
        "fedstage run advertise {input.recipe} round={wildcards.round} group={wildcards.group}"
        " participant={wildcards.participant}"


rule share:
    """Share a participant's secrets with the others, encrypted with the keys of all."""
    input:
        unpack(reads("share")),
    output:
        shares=GROUP + "secure/participant_{participant}_shares.safetensors",
    log:
        "results/logs/share/" + AT + "secure/participant_{participant}_shares.json",
    message:
        "share: round {wildcards.round}, group {wildcards.group},"
        " participant {wildcards.participant} ({wildcards.recipe})"
    shell:
        "fedstage run share {input.recipe} round={wildcards.round} group={wildcards.group}"
        " participant={wildcards.participant}"


rule masked_input:
    """Hide a participant's update under masks that vanish from the sum."""
    input:
        unpack(reads("masked_input")),
    output:
        vector=GROUP + "secure/participant_{participant}_vector.safetensors",
        receipt=GROUP + "secure/participant_{participant}_receipt.safetensors",
    log:
        "results/logs/masked_input/" + AT + "secure/participant_{participant}_vector.json",
    message:
        "masked_input: round {wildcards.round}, group {wildcards.group},"
        " participant {wildcards.participant} ({wildcards.recipe})"
    shell:
        "fedstage run masked_input {input.recipe} round={wildcards.round}"
        " group={wildcards.group} participant={wildcards.participant}"


rule unmask:
    """Reveal a participant's shares of masks that have not vanished."""
    input:
        unpack(reads("unmask")),
    output:
        revealed=GROUP + "secure/participant_{participant}_revealed.safetensors",
    log:
        "results/logs/unmask/" + AT + "secure/participant_{participant}_revealed.json",
    message:
        "unmask: round {wildcards.round}, group {wildcards.group},"
        " participant {wildcards.participant} ({wildcards.recipe})"
    shell:
        "fedstage run unmask {input.recipe} round={wildcards.round} group={wildcards.group}"
        " participant={wildcards.participant}"


rule client_state:
    """Keep what participants go on from, and the server does not get."""
    input:
        unpack(reads("client_state")),
    output:
        output=temp(GROUP + "secure/client_states.safetensors"),
    log:
        "results/logs/client_state/" + AT + "secure/client_states.json",
    message:
        "client_state: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run client_state {input.recipe} round={wildcards.round} group={wildcards.group}"


rule aggregation:
    """Average the updates of a group's participants, or with secure aggregation what they send."""
    input:
        unpack(reads("aggregation")),
    output:
        output=GROUP + "aggregated.safetensors",
        participants=GROUP + "participants.parquet",
    log:
        "results/logs/aggregation/" + AT + "aggregated.json",
    wildcard_constraints:
        recipe=recipes("aggregation", without="new_state"),
    threads: threads_of_aggregation
    resources:
        gpu=gpus_of_aggregation,
    message:
        "aggregation: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run aggregation {input.recipe} round={wildcards.round} group={wildcards.group}"


use rule aggregation as aggregation_with_state with:
    output:
        output=GROUP + "aggregated.safetensors",
        participants=GROUP + "participants.parquet",
        new_state=temp(GROUP + "state.safetensors"),
    wildcard_constraints:
        recipe=recipes("aggregation", "new_state"),


rule cached_labels:
    """Keep an ensemble's labels of public samples, made of all members' logits, for later rounds."""
    input:
        unpack(reads("cached_labels")),
    output:
        output=GROUP + "cached_labels.safetensors",
    log:
        "results/logs/cached_labels/" + AT + "cached_labels.json",
    message:
        "cached_labels: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run cached_labels {input.recipe} round={wildcards.round} group={wildcards.group}"


rule selected_labels:
    """Select what the server's model learns from each public sample, by the members' logits."""
    input:
        unpack(reads("selected_labels")),
    output:
        output=GROUP + "selected_labels.safetensors",
    log:
        "results/logs/selected_labels/" + AT + "selected_labels.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "selected_labels: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run selected_labels {input.recipe} round={wildcards.round}"
        " group={wildcards.group}"


rule distillation:
    """Teach a group's aggregated model with the logits of an ensemble."""
    input:
        unpack(reads("distillation")),
    output:
        output=GROUP + "distilled.safetensors",
    log:
        "results/logs/distillation/" + AT + "distilled.json",
    wildcard_constraints:
        recipe=recipes("distillation"),
    threads: threads
    resources:
        gpu=gpus,
    message:
        "distillation: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run distillation {input.recipe} round={wildcards.round} group={wildcards.group}"


rule label_distillation:
    """Teach a model with labels that are kept of public samples."""
    input:
        unpack(reads("label_distillation")),
    output:
        output=GROUP + "distilled.safetensors",
    log:
        "results/logs/label_distillation/" + AT + "distilled.json",
    wildcard_constraints:
        recipe=recipes("label_distillation"),
    threads: threads
    resources:
        gpu=gpus,
    message:
        "label_distillation: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run label_distillation {input.recipe} round={wildcards.round}"
        " group={wildcards.group}"


rule judged_distillation:
    """Teach a group's aggregated model with the logits of the clients that are better on labelled images."""
    input:
        unpack(reads("judged_distillation")),
    output:
        output=GROUP + "distilled.safetensors",
    log:
        "results/logs/judged_distillation/" + AT + "distilled.json",
    wildcard_constraints:
        recipe=recipes("judged_distillation"),
    threads: threads
    resources:
        gpu=gpus,
    message:
        "judged_distillation: round {wildcards.round},"
        " group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run judged_distillation {input.recipe} round={wildcards.round}"
        " group={wildcards.group}"


rule data_free_distillation:
    """Teach a group's aggregated model with an ensemble, on images that the server generates."""
    input:
        unpack(reads("data_free_distillation")),
    output:
        output=GROUP + "distilled.safetensors",
        new_generator=temp(GROUP + "generator.safetensors"),
    log:
        "results/logs/data_free_distillation/" + AT + "distilled.json",
    wildcard_constraints:
        recipe=recipes("data_free_distillation"),
    threads: threads
    resources:
        gpu=gpus,
    message:
        "data_free_distillation: round {wildcards.round},"
        " group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run data_free_distillation {input.recipe} round={wildcards.round}"
        " group={wildcards.group}"


rule feature_training:
    """Train the server's model on features of the participants' samples."""
    input:
        unpack(reads("feature_training")),
    output:
        output=GROUP + "trained.safetensors",
    log:
        "results/logs/feature_training/" + AT + "trained.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "feature_training: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run feature_training {input.recipe} round={wildcards.round}"
        " group={wildcards.group}"


rule head_sharing:
    """Give a model the mean of other models' heads."""
    input:
        unpack(reads("head_sharing")),
    output:
        output=GROUP + "with_head.safetensors",
    log:
        "results/logs/head_sharing/" + AT + "with_head.json",
    message:
        "head_sharing: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run head_sharing {input.recipe} round={wildcards.round} group={wildcards.group}"
