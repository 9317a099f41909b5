"""Rounds of federated training, a job for each participant and step: see `fedstage.plan.training`.

With granularity `segment`, the rules of segments make these files.
"""


rule local_training:
    """Train a participant on its client's samples, from its group's global model of the round before."""
    input:
        unpack(reads("local_training")),
    output:
        outputs="results/training/{recipe}/round_{round}/group_{group}/participant_{participant}.safetensors",
    log:
        "results/logs/local_training/{recipe}/round_{round}/group_{group}/participant_{participant}.json",
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
        public="results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_public_keys.safetensors",
        private=temp(
            "results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_private.safetensors"
        ),
    log:
        "results/logs/advertise/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_public_keys.json",
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
        shares="results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_shares.safetensors",
    log:
        "results/logs/share/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_shares.json",
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
        vector="results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_vector.safetensors",
        receipt="results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_receipt.safetensors",
    log:
        "results/logs/masked_input/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_vector.json",
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
        revealed="results/training/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_revealed.safetensors",
    log:
        "results/logs/unmask/{recipe}/round_{round}/group_{group}/secure/participant_{participant}_revealed.json",
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
        output=temp(
            "results/training/{recipe}/round_{round}/group_{group}/secure/client_states.safetensors"
        ),
    log:
        "results/logs/client_state/{recipe}/round_{round}/group_{group}/secure/client_states.json",
    message:
        "client_state: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run client_state {input.recipe} round={wildcards.round} group={wildcards.group}"


rule aggregation:
    """Average the updates of a group's participants, or with secure aggregation what they send."""
    input:
        unpack(reads("aggregation")),
    output:
        output="results/training/{recipe}/round_{round}/group_{group}/aggregated.safetensors",
        participants="results/training/{recipe}/round_{round}/group_{group}/participants.parquet",
    log:
        "results/logs/aggregation/{recipe}/round_{round}/group_{group}/aggregated.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/aggregated.safetensors",
        participants="results/training/{recipe}/round_{round}/group_{group}/participants.parquet",
        new_state=temp("results/training/{recipe}/round_{round}/group_{group}/state.safetensors"),
    wildcard_constraints:
        recipe=recipes("aggregation", "new_state"),


rule cached_labels:
    """Keep an ensemble's labels of public samples, made of all members' logits, for later rounds."""
    input:
        unpack(reads("cached_labels")),
    output:
        output="results/training/{recipe}/round_{round}/group_{group}/cached_labels.safetensors",
    log:
        "results/logs/cached_labels/{recipe}/round_{round}/group_{group}/cached_labels.json",
    message:
        "cached_labels: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run cached_labels {input.recipe} round={wildcards.round} group={wildcards.group}"


rule selected_labels:
    """Select what the server's model learns from each public sample, by the members' logits."""
    input:
        unpack(reads("selected_labels")),
    output:
        output="results/training/{recipe}/round_{round}/group_{group}/selected_labels.safetensors",
    log:
        "results/logs/selected_labels/{recipe}/round_{round}/group_{group}/selected_labels.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/distilled.safetensors",
    log:
        "results/logs/distillation/{recipe}/round_{round}/group_{group}/distilled.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/distilled.safetensors",
    log:
        "results/logs/label_distillation/{recipe}/round_{round}/group_{group}/distilled.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/distilled.safetensors",
    log:
        "results/logs/judged_distillation/{recipe}/round_{round}/group_{group}/distilled.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/distilled.safetensors",
        new_generator=temp(
            "results/training/{recipe}/round_{round}/group_{group}/generator.safetensors"
        ),
    log:
        "results/logs/data_free_distillation/{recipe}/round_{round}/group_{group}/distilled.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/trained.safetensors",
    log:
        "results/logs/feature_training/{recipe}/round_{round}/group_{group}/trained.json",
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
        output="results/training/{recipe}/round_{round}/group_{group}/with_head.safetensors",
    log:
        "results/logs/head_sharing/{recipe}/round_{round}/group_{group}/with_head.json",
    message:
        "head_sharing: round {wildcards.round}, group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run head_sharing {input.recipe} round={wildcards.round} group={wildcards.group}"
