"""What training starts from: data sets, partitions, participants, initial weights.

At the end are generators and discriminators of images, whose odds weigh the votes of clients (FedGO).
"""


rule dataset:
    """Read the raw files of a data set into arrays."""
    input:
        unpack(reads("dataset")),
    output:
        train="results/data/{recipe}/train.safetensors",
        test="results/data/{recipe}/test.safetensors",
        held_out="results/data/{recipe}/held_out.safetensors",
        server_validation="results/data/{recipe}/server_validation.safetensors",
        test_own="results/data/{recipe}/test_own.safetensors",
        info="results/data/{recipe}/info.json",
    log:
        "results/logs/dataset/{recipe}.json",
    wildcard_constraints:
        recipe=recipes("dataset"),
    priority: 1
    message:
        "dataset ({wildcards.recipe})"
    shell:
        "fedstage run dataset {input.recipe}"


rule features:
    """Encode the samples of a data set."""
    input:
        unpack(reads("features")),
    output:
        train="results/data/{recipe}/train.safetensors",
        test="results/data/{recipe}/test.safetensors",
        held_out="results/data/{recipe}/held_out.safetensors",
        server_validation="results/data/{recipe}/server_validation.safetensors",
        test_own="results/data/{recipe}/test_own.safetensors",
        info="results/data/{recipe}/info.json",
    log:
        "results/logs/features/{recipe}.json",
    wildcard_constraints:
        recipe=recipes("features"),
    priority: 1
    threads: threads
    resources:
        gpu=gpus,
    message:
        "features ({wildcards.recipe})"
    shell:
        "fedstage run features {input.recipe}"


rule partition:
    """Divide the training samples over clients and roles."""
    input:
        unpack(reads("partition")),
    output:
        output="results/partitions/{recipe}/clients.parquet",
        histogram="results/partitions/{recipe}/label_histogram.parquet",
    log:
        "results/logs/partition/{recipe}.json",
    priority: 1
    message:
        "partition ({wildcards.recipe})"
    shell:
        "fedstage run partition {input.recipe}"


rule core:
    """Write the labelled samples that the server has of its own."""
    input:
        unpack(reads("core")),
    output:
        output="results/partitions/{recipe}/core.safetensors",
    log:
        "results/logs/core/{recipe}.json",
    priority: 1
    message:
        "core ({wildcards.recipe})"
    shell:
        "fedstage run core {input.recipe}"


rule participation:
    """Draw the client of each participant, for a block of rounds."""
    input:
        unpack(reads("participation")),
    output:
        output="results/participation/{recipe}/rounds_{first}-{last}.parquet",
    log:
        "results/logs/participation/{recipe}/rounds_{first}-{last}.json",
    priority: 1
    message:
        "participation: first {wildcards.first}, last {wildcards.last} ({wildcards.recipe})"
    shell:
        "fedstage run participation {input.recipe} first={wildcards.first} last={wildcards.last}"


rule initial_model:
    """Draw the weights that a group's global model starts from."""
    input:
        unpack(reads("initial_model")),
    output:
        output="results/initial_models/{recipe}/group_{group}.safetensors",
    log:
        "results/logs/initial_model/{recipe}/group_{group}.json",
    priority: 1
    message:
        "initial_model: group {wildcards.group} ({wildcards.recipe})"
    shell:
        "fedstage run initial_model {input.recipe} group={wildcards.group}"


rule base_model:
    """Draw the weights that no model of a seed changes."""
    input:
        unpack(reads("base_model")),
    output:
        output="results/initial_models/{recipe}/base.safetensors",
    log:
        "results/logs/base_model/{recipe}.json",
    priority: 1
    message:
        "base_model ({wildcards.recipe})"
    shell:
        "fedstage run base_model {input.recipe}"


rule public_generator:
    """Train the server's generator on public images."""
    input:
        unpack(reads("public_generator")),
    output:
        output="results/discriminators/{recipe}/generator.safetensors",
        picture="results/discriminators/{recipe}/images.png",
    log:
        "results/logs/public_generator/{recipe}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "public_generator ({wildcards.recipe})"
    shell:
        "fedstage run public_generator {input.recipe}"


rule client_discriminator:
    """Train a client to tell its own images from the generator's."""
    input:
        unpack(reads("client_discriminator")),
    output:
        output="results/discriminators/{recipe}/client_{client}.safetensors",
    log:
        "results/logs/client_discriminator/{recipe}/client_{client}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "client_discriminator: client {wildcards.client} ({wildcards.recipe})"
    shell:
        "fedstage run client_discriminator {input.recipe} client={wildcards.client}"


rule client_odds:
    """Compute, with all discriminators, the odds that public images are each client's."""
    input:
        unpack(reads("client_odds")),
    output:
        output="results/discriminators/{recipe}/odds.safetensors",
    log:
        "results/logs/client_odds/{recipe}.json",
    threads: threads
    resources:
        gpu=gpus,
    message:
        "client_odds ({wildcards.recipe})"
    shell:
        "fedstage run client_odds {input.recipe}"
