"""What is measured of runs: logits, accuracy, forgetting."""

# With segments, logits on public images are made by them.
IMAGES = "[^/]+" if BY_PARTICIPANT else ROLES


rule logits:
    """Compute the logits of a group's ensemble members, updates or aggregated models, on images."""
    input:
        unpack(reads("logits")),
    output:
        output=GROUP + "logits/{members}-{images}.safetensors",
    log:
        "results/logs/logits/" + AT + "logits/{members}-{images}.json",
    wildcard_constraints:
        images=IMAGES,
    threads: threads
    resources:
        gpu=gpus,
    message:
        "logits: round {wildcards.round}, group {wildcards.group},"
        " members {wildcards.members}, images {wildcards.images} ({wildcards.recipe})"
    shell:
        "fedstage run logits {input.recipe} round={wildcards.round} group={wildcards.group}"
        " members={wildcards.members} images={wildcards.images}"


rule evaluation:
    """Score a run's global models, or the logits of an ensemble's members, of all rounds."""
    input:
        unpack(reads("evaluation")),
    output:
        output="results/training/{recipe}/metrics/{evaluated}-{role}/rounds_{rounds}_every_{every}.parquet",
    log:
        "results/logs/evaluation/{recipe}/metrics/{evaluated}-{role}/"
        "rounds_{rounds}_every_{every}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "evaluation: evaluated {wildcards.evaluated}, role {wildcards.role},"
        " rounds {wildcards.rounds}, every {wildcards.every} ({wildcards.recipe})"
    shell:
        "fedstage run evaluation {input.recipe} evaluated={wildcards.evaluated}"
        " role={wildcards.role} rounds={wildcards.rounds} every={wildcards.every}"


rule retention:
    """Measure what a run's main model forgets from round to round."""
    input:
        unpack(reads("retention")),
    output:
        output="results/training/{recipe}/metrics/retention/rounds_{rounds}.parquet",
        right="results/training/{recipe}/metrics/retention/rounds_{rounds}.safetensors",
    log:
        "results/logs/retention/{recipe}/metrics/retention/rounds_{rounds}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "retention: rounds {wildcards.rounds} ({wildcards.recipe})"
    shell:
        "fedstage run retention {input.recipe} rounds={wildcards.rounds}"


rule client_accuracy:
    """Score a run's main model for each client and each class."""
    input:
        unpack(reads("client_accuracy")),
    output:
        output="results/training/{recipe}/metrics/clients/rounds_{rounds}.parquet",
    log:
        "results/logs/client_accuracy/{recipe}/metrics/clients/rounds_{rounds}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "client_accuracy: rounds {wildcards.rounds} ({wildcards.recipe})"
    shell:
        "fedstage run client_accuracy {input.recipe} rounds={wildcards.rounds}"


rule local_evaluation:
    """Score models that were trained without federation."""
    input:
        unpack(reads("local_evaluation")),
    output:
        output="results/local_models/{recipe}/metrics/{precision}/{who}-{role}-rounds_{rounds}.parquet",
    log:
        "results/logs/local_evaluation/{recipe}/metrics/{precision}/"
        "{who}-{role}-rounds_{rounds}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "local_evaluation: who {wildcards.who}, role {wildcards.role},"
        " rounds {wildcards.rounds} ({wildcards.recipe})"
    shell:
        "fedstage run local_evaluation {input.recipe} who={wildcards.who}"
        " role={wildcards.role} rounds={wildcards.rounds}"


rule one_shot_evaluation:
    """Score an aggregator of clients' final models by their logits."""
    input:
        unpack(reads("one_shot_evaluation", of="aggregators")),
    output:
        output="results/aggregators/{recipe}/metrics/{role}.parquet",
        over_rounds="results/aggregators/{recipe}/metrics/{role}_over_rounds.parquet",
    log:
        "results/logs/one_shot_evaluation/{recipe}/metrics/{role}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "one_shot_evaluation: role {wildcards.role} ({wildcards.recipe})"
    shell:
        "fedstage run one_shot_evaluation {input.recipe} role={wildcards.role}"


use rule one_shot_evaluation as one_shot_evaluation_of_distilled_models with:
    input:
        unpack(reads("one_shot_evaluation", of="distilled_models")),
    output:
        output="results/distilled_models/{recipe}/metrics/{role}.parquet",
        over_rounds="results/distilled_models/{recipe}/metrics/{role}_over_rounds.parquet",
