"""Models that clients train to the end, alone, and what a server makes of them in one shot."""


rule local_model:
    """Train a client, the pooled data, or the server's core, to the end, without federation."""
    input:
        unpack(reads("local_model")),
    output:
        output="results/local_models/{recipe}/{who}.safetensors",
    log:
        "results/logs/local_model/{recipe}/{who}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "local_model: who {wildcards.who} ({wildcards.recipe})"
    shell:
        "fedstage run local_model {input.recipe} who={wildcards.who}"


rule quantised_model:
    """Quantise the model of a client, calibrated on its own samples."""
    input:
        unpack(reads("quantised_model")),
    output:
        output="results/local_models/{recipe}/quantised/{precision}/{who}.safetensors",
    log:
        "results/logs/quantised_model/{recipe}/quantised/{precision}/{who}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "quantised_model: who {wildcards.who} ({wildcards.recipe})"
    shell:
        "fedstage run quantised_model {input.recipe} who={wildcards.who}"


rule client_logits:
    """Compute the logits of a client's final model, with its quantisation, on images."""
    input:
        unpack(reads("client_logits")),
    output:
        output="results/local_models/{recipe}/logits/{precision}/{who}-{images}.safetensors",
    log:
        "results/logs/client_logits/{recipe}/logits/{precision}/{who}-{images}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "client_logits: who {wildcards.who}, images {wildcards.images} ({wildcards.recipe})"
    shell:
        "fedstage run client_logits {input.recipe} who={wildcards.who} images={wildcards.images}"


rule client_generator:
    """Train a client's generator of images."""
    input:
        unpack(reads("client_generator")),
    output:
        output="results/generators/{recipe}/client_{client}.safetensors",
    log:
        "results/logs/client_generator/{recipe}/client_{client}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "client_generator: client {wildcards.client} ({wildcards.recipe})"
    shell:
        "fedstage run client_generator {input.recipe} client={wildcards.client}"


rule generated:
    """Generate images with the clients' generators."""
    input:
        unpack(reads("generated")),
    output:
        output="results/generated/{recipe}/train.safetensors",
        histogram="results/generated/{recipe}/label_histogram.parquet",
        picture="results/generated/{recipe}/images.png",
        rounds="results/generated/{recipe}/rounds.parquet",
    log:
        "results/logs/generated/{recipe}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "generated ({wildcards.recipe})"
    shell:
        "fedstage run generated {input.recipe}"


rule synthesised:
    """Generate images against the clients' models, and teach a student with them."""
    input:
        unpack(reads("synthesised")),
    output:
        output="results/synthesised/{recipe}/train.safetensors",
        histogram="results/synthesised/{recipe}/label_histogram.parquet",
        picture="results/synthesised/{recipe}/images.png",
        student="results/synthesised/{recipe}/student.safetensors",
        weights="results/synthesised/{recipe}/weights.safetensors",
    log:
        "results/logs/synthesised/{recipe}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "synthesised ({wildcards.recipe})"
    shell:
        "fedstage run synthesised {input.recipe}"


rule aggregator:
    """Train or count what combines the logits of clients' final models."""
    input:
        unpack(reads("aggregator")),
    output:
        output="results/aggregators/{recipe}/aggregator.safetensors",
        snapshots="results/aggregators/{recipe}/snapshots.safetensors",
        rounds="results/aggregators/{recipe}/rounds.parquet",
    log:
        "results/logs/aggregator/{recipe}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "aggregator ({wildcards.recipe})"
    shell:
        "fedstage run aggregator {input.recipe}"


rule feature_moments:
    """Measure the moments of the features of a client's samples."""
    input:
        unpack(reads("feature_moments")),
    output:
        output="results/moments/{recipe}/client_{client}.safetensors",
    log:
        "results/logs/feature_moments/{recipe}/client_{client}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "feature_moments: client {wildcards.client} ({wildcards.recipe})"
    shell:
        "fedstage run feature_moments {input.recipe} client={wildcards.client}"


rule closed_form_model:
    """Compute a model's last layer from the moments of clients' features."""
    input:
        unpack(reads("closed_form_model")),
    output:
        output="results/distilled_models/{recipe}/model.safetensors",
        rounds="results/distilled_models/{recipe}/rounds.parquet",
    log:
        "results/logs/closed_form_model/{recipe}.json",
    wildcard_constraints:
        recipe=recipes("closed_form_model"),
    message:
        "closed_form_model ({wildcards.recipe})"
    shell:
        "fedstage run closed_form_model {input.recipe}"


rule distilled_model:
    """Teach a model with the logits of clients' final models on public images."""
    input:
        unpack(reads("distilled_model")),
    output:
        output="results/distilled_models/{recipe}/model.safetensors",
    log:
        "results/logs/distilled_model/{recipe}.json",
    wildcard_constraints:
        recipe=recipes("distilled_model"),
    threads: threads
    resources:
        gpu=gpus,
    message:
        "distilled_model ({wildcards.recipe})"
    shell:
        "fedstage run distilled_model {input.recipe}"
