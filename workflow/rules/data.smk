"""From raw data to what training starts from: data sets, partitions, participants, weights."""

# What is wrong with data shows in these jobs, so they come before any training.
FIRST = 1


rule dataset:
    output:
        train="results/data/{data}/train.safetensors",
        test="results/data/{data}/test.safetensors",
        held_out="results/data/{data}/held_out.safetensors",
        server_validation="results/data/{data}/server_validation.safetensors",
        test_own="results/data/{data}/test_own.safetensors",
        info="results/data/{data}/info.json",
    log:
        "results/logs/dataset/{data}.log",
    priority: FIRST
    params:
        source=lambda w: source_of(found("data", w.data), "dataset"),
        raw=lambda w: raw(w.data),
        settings=lambda w: as_option(found("data", w.data)),
    message:
        "data set {wildcards.data}"
    shell:
        "fedstage dataset --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --train {output.train}"
        " --test {output.test} --held-out {output.held_out}"
        " --server-validation {output.server_validation} --test-own {output.test_own}"
        " --info {output.info}"


rule partition:
    input:
        train=lambda w: data_files.data_file(found("partitions", w.partition).data, "train"),
    output:
        clients="results/partitions/{partition}/clients.parquet",
        histogram="results/partitions/{partition}/label_histogram.parquet",
    log:
        "results/logs/partition/{partition}.log",
    priority: FIRST
    params:
        source=lambda w: source_of(found("partitions", w.partition), "partition"),
        settings=lambda w: as_json(partition_settings(found("partitions", w.partition))),
    message:
        "partition {wildcards.partition}"
    shell:
        "fedstage partition --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --train {input.train}"
        " --output {output.clients} --histogram {output.histogram}"


rule core:
    input:
        unpack(lambda w: data_files.core_inputs(found("partitions", w.partition))),
    output:
        "results/partitions/{partition}/core.safetensors",
    log:
        "results/logs/core/{partition}.log",
    params:
        source=stage_fingerprint("core"),
        classes=lambda w: found("partitions", w.partition).core.classes,
    message:
        "the server's own samples of {wildcards.partition}"
    shell:
        "fedstage core --log {log} --fingerprint {params.source}"
        " --data {input.data} --clients {input.clients} --info {input.info}"
        " --classes {params.classes} --output {output}"


rule participation:
    input:
        unpack(lambda w: data_files.participation_inputs(found("plans", w.plan))),
    output:
        "results/participation/{plan}/rounds_{first}-{last}.parquet",
    log:
        "results/logs/participation/{plan}/rounds_{first}-{last}.log",
    wildcard_constraints:
        first=r"\d{4}",
        last=r"\d{4}",
    params:
        source=stage_fingerprint("participation"),
        clients=lambda w: found("plans", w.plan).clients,
        participants=lambda w: found("plans", w.plan).participants,
        seed=lambda w: found("plans", w.plan).seed,
        binding=lambda w: as_option(binding(found("plans", w.plan))),
        groups=lambda w: groups_drawn(found("plans", w.plan)) or "",
        order=lambda w: in_order(found("plans", w.plan)),
        delays=lambda w: as_option(delays(found("plans", w.plan))),
    message:
        "participants {wildcards.plan}, rounds {wildcards.first} to {wildcards.last}"
    shell:
        "fedstage participation --log {log} --fingerprint {params.source}"
        " --clients {params.clients}"
        " --participants {params.participants} --seed {params.seed}"
        " --first {wildcards.first} --last {wildcards.last}"
        " --binding {params.binding:q} --groups {params.groups} --histogram {input.histogram} --order {params.order}"
        " --delays {params.delays:q} --output {output}"


rule initial_model:
    input:
        info=lambda w: data_files.data_file(found("initial", w.initial).data, "info"),
    output:
        "results/initial_models/{initial}/group_{group}.safetensors",
    log:
        "results/logs/initial_model/{initial}/group_{group}.log",
    priority: FIRST
    params:
        source=lambda w: source_of(found("initial", w.initial).settings, "initial_model"),
        settings=lambda w: as_option(initial_settings(w)),
    message:
        "initial model {wildcards.initial}, group {wildcards.group}"
    shell:
        "fedstage initial_model --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q}"
        " --group {wildcards.group} --info {input.info} --output {output}"


rule line:
    output:
        "results/{folder}/{line}/line.yaml",
    log:
        "results/logs/line/{folder}/{line}.log",
    localrule: True
    params:
        source=stage_fingerprint("line"),
        settings=lambda w: as_option(new_line(w)),
    message:
        "line {wildcards.line}"
    shell:
        "fedstage line --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"
