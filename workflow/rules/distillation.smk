"""Logits of ensemble members, which evaluations read too, and the distillation of students."""


rule logits:
    input:
        unpack(lambda w: training.LOGITS.job(*place(w), w.members, w.images).inputs),
    output:
        "results/training/{line}/round_{round}/group_{group}/logits/{members}-{images}.safetensors",
    log:
        "results/logs/logits/{line}/round_{round}/group_{group}/{members}-{images}.log",
    wildcard_constraints:
        # Those of public images are a segment's where training is.
        images="[^/]+" if BY_PARTICIPANT else "test|test_own|validation",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=lambda w: source_of(line_of(w), "logits", members=w.members),
    message:
        "round {wildcards.round}: logits of {wildcards.members}, group {wildcards.group}"
        " ({wildcards.line})"
    shell:
        "fedstage logits --log {log} --fingerprint {params.source}"
        " --line {input.line} --members {wildcards.members}"
        " --models {input.models} --aggregated {input.aggregated} --start {input.start}"
        " --server-model {input.server_model}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"


DISCRIMINATORS = "results/discriminators/{line}"


rule public_generator:
    input:
        unpack(lambda w: discriminators.PUBLIC_GENERATOR.job(line_of(w)).inputs),
    output:
        generator=f"{DISCRIMINATORS}/generator.safetensors",
        picture=f"{DISCRIMINATORS}/images.png",
    log:
        "results/logs/public_generator/{line}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("public_generator"),
    message:
        "the server trains a generator ({wildcards.line})"
    shell:
        "fedstage public_generator --log {log} --fingerprint {params.source}"
        " --line {input.line} --public {input.public} --info {input.info}"
        " --output {output.generator} --picture {output.picture}"


rule client_discriminator:
    input:
        unpack(lambda w: discriminators.CLIENT_DISCRIMINATOR.job(line_of(w), client_of(w)).inputs),
    output:
        f"{DISCRIMINATORS}/{{who}}.safetensors",
    log:
        "results/logs/client_discriminator/{line}/{who}.log",
    wildcard_constraints:
        who=r"client_\d+",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("client_discriminator"),
        client=client_of,
    message:
        "{wildcards.who} trains a discriminator ({wildcards.line})"
    shell:
        "fedstage client_discriminator --log {log} --fingerprint {params.source}"
        " --line {input.line} --client {params.client} --generator {input.generator}"
        " --data {input.data} --clients {input.clients} --info {input.info} --output {output}"


rule client_odds:
    input:
        unpack(lambda w: discriminators.CLIENT_ODDS.job(line_of(w)).inputs),
    output:
        f"{DISCRIMINATORS}/odds.safetensors",
    log:
        "results/logs/client_odds/{line}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("client_odds"),
    message:
        "odds that public images are each client's ({wildcards.line})"
    shell:
        "fedstage client_odds --log {log} --fingerprint {params.source}"
        " --line {input.line} --discriminators {input.discriminators}"
        " --public {input.public} --info {input.info} --output {output}"


if BY_PARTICIPANT:
    GENERATING = is_generating_name()

    rule distillation:
        input:
            unpack(inputs_of(training.DISTILLATION)),
        output:
            model="results/training/{line}/round_{round}/group_{group}/distilled.safetensors",
        log:
            "results/logs/distillation/{line}/round_{round}/group_{group}.log",
        wildcard_constraints:
            line=rf"(?!{GENERATING}/)[^/]+",
        threads: threads
        resources:
            gpu=gpus,
        params:
            source=source("distillation"),
            generator=lambda w, output: (
                f"--new-generator {output.generator}" if "generator" in output.keys() else ""
            ),
        message:
            "round {wildcards.round}: group {wildcards.group} is distilled ({wildcards.line})"
        shell:
            "fedstage distillation --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round} --group {wildcards.group}"
            " --start {input.start} --logits {input.logits} --members {input.members}"
            " --judged {input.judged} --updates {input.updates} --public {input.public}"
            " --odds {input.odds} --histogram {input.histogram} --generator {input.generator}"
            " --server-validation {input.server_validation} --info {input.info}"
            " --output {output.model} {params.generator}"

    # Lines whose students learn from images of a generator, which is temporary as round state is.
    use rule distillation as distillation_with_generator with:
        output:
            model="results/training/{line}/round_{round}/group_{group}/distilled.safetensors",
            generator=temp(
                "results/training/{line}/round_{round}/group_{group}/generator.safetensors"
            ),
        wildcard_constraints:
            line=GENERATING,
            round=rf"(?!(?:{KEPT_STATE})/)\d{{4}}",

    use rule distillation as distillation_with_kept_generator with:
        output:
            model="results/training/{line}/round_{round}/group_{group}/distilled.safetensors",
            generator="results/training/{line}/round_{round}/group_{group}/generator.safetensors",
        wildcard_constraints:
            line=GENERATING,
            round=KEPT_STATE,

    rule feature_training:
        input:
            unpack(inputs_of(training.FEATURE_TRAINING)),
        output:
            "results/training/{line}/round_{round}/group_{group}/trained.safetensors",
        log:
            "results/logs/feature_training/{line}/round_{round}/group_{group}.log",
        threads: threads
        resources:
            gpu=gpus,
        params:
            source=source("feature_training"),
        message:
            "round {wildcards.round}: the server's model trains on features ({wildcards.line})"
        shell:
            "fedstage feature_training --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round} --group {wildcards.group}"
            " --start {input.start} --updates {input.updates} --data {input.data}"
            " --clients {input.clients} --info {input.info} --output {output}"

    rule cached_labels:
        input:
            unpack(inputs_of(training.CACHED_LABELS)),
        output:
            "results/training/{line}/round_{round}/group_{group}/cached_labels.safetensors",
        log:
            "results/logs/cached_labels/{line}/round_{round}/group_{group}.log",
        params:
            source=source("cached_labels"),
        message:
            "round {wildcards.round}: labels are kept ({wildcards.line})"
        shell:
            "fedstage cached_labels --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round}"
            " --logits {input.logits} --before {input.before} --output {output}"

    rule selected_labels:
        input:
            unpack(inputs_of(training.SELECTED_LABELS)),
        output:
            "results/training/{line}/round_{round}/group_{group}/selected_labels.safetensors",
        log:
            "results/logs/selected_labels/{line}/round_{round}/group_{group}.log",
        threads: threads
        resources:
            gpu=gpus,
        params:
            source=source("selected_labels"),
        message:
            "round {wildcards.round}: the server selects what it learns ({wildcards.line})"
        shell:
            "fedstage selected_labels --log {log} --fingerprint {params.source}"
            " --line {input.line} --info {input.info} --round {wildcards.round}"
            " --start {input.start} --logits {input.logits} --public {input.public}"
            " --before {input.before} --output {output}"

    rule head_transfer:
        input:
            unpack(inputs_of(training.HEAD_TRANSFER)),
        output:
            "results/training/{line}/round_{round}/group_{group}/with_head.safetensors",
        log:
            "results/logs/head_transfer/{line}/round_{round}/group_{group}.log",
        params:
            source=source("head_transfer"),
        message:
            "round {wildcards.round}: group {wildcards.group} takes a head ({wildcards.line})"
        shell:
            "fedstage head_transfer --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round} --group {wildcards.group}"
            " --model {input.model} --heads {input.heads} --output {output}"
