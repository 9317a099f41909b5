"""Models that clients train to the end, alone or pooled, and what one-shot learning makes of them."""

LOCAL = "results/local_models/{line}"


rule local_model:
    input:
        unpack(lambda w: one_shot_edges.local_model(line_of(w), client_of(w))),
    output:
        f"{LOCAL}/{{who}}.safetensors",
    log:
        "results/logs/local_model/{line}/{who}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("local_model"),
        client=lambda w: "" if client_of(w) is None else client_of(w),
    message:
        "{wildcards.who} trains without federation ({wildcards.line})"
    shell:
        "fedstage local_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --client {params.client}"
        " --data {input.data} --info {input.info} --clients {input.clients}"
        " --start {input.start} --output {output}"


rule quantised_model:
    input:
        unpack(lambda w: one_shot_edges.quantised_model(line_of(w))),
        model=f"{LOCAL}/{{who}}.safetensors",
    output:
        f"{LOCAL}/quantised/{{precision}}/{{who}}.safetensors",
    log:
        "results/logs/quantised_model/{line}/{precision}/{who}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=lambda w: source_of(precise_line(w), "quantised_model"),
        quantisation=quantisation,
    message:
        "{wildcards.who} is quantised to {wildcards.precision} ({wildcards.line})"
    shell:
        "fedstage quantised_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --quantisation {params.quantisation:q} --model {input.model}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"


rule client_logits:
    input:
        unpack(lambda w: one_shot_edges.client_logits(precise_line(w), client_of(w), w.images)),
    output:
        f"{LOCAL}/logits/{{precision}}/{{who}}-{{images}}.safetensors",
    log:
        "results/logs/client_logits/{line}/{precision}/{who}-{images}.log",
    wildcard_constraints:
        images="[^/]+",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=lambda w: source_of(precise_line(w), "client_logits"),
        quantisation=quantisation,
    message:
        "logits of {wildcards.who} on {wildcards.images} ({wildcards.line})"
    shell:
        "fedstage client_logits --log {log} --fingerprint {params.source}"
        " --line {input.line} --model {input.model} --quantisation {params.quantisation:q}"
        " --images {wildcards.images}"
        " --data {input.data} --info {input.info} --clients {input.clients} --output {output}"


rule aggregator:
    input:
        unpack(lambda w: one_shot.AGGREGATOR.job(line_of(w)).inputs),
    output:
        aggregator="results/aggregators/{line}/aggregator.safetensors",
        snapshots="results/aggregators/{line}/snapshots.safetensors",
        rounds="results/aggregators/{line}/rounds.parquet",
    log:
        "results/logs/aggregator/{line}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("aggregator"),
    message:
        "aggregator {wildcards.line}"
    shell:
        "fedstage aggregator --log {log} --fingerprint {params.source}"
        " --line {input.line} --models {input.models} --quantised {input.quantised}"
        " --logits {input.logits} --data {input.data} --clients {input.clients}"
        " --histogram {input.histogram} --validation-logits {input.validation_logits}"
        " --validation {input.validation} --info {input.info}"
        " --output {output.aggregator} --snapshots {output.snapshots} --rounds {output.rounds}"


CLOSED_FORM = is_closed_form_name()


rule distilled_model:
    input:
        unpack(lambda w: one_shot.DISTILLED_MODEL.job(line_of(w)).inputs),
    output:
        "results/distilled_models/{line}/model.safetensors",
    log:
        "results/logs/distilled_model/{line}.log",
    wildcard_constraints:
        line=rf"(?!{CLOSED_FORM}/)[^/]+",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("distilled_model"),
    message:
        "one-shot distillation {wildcards.line}"
    shell:
        "fedstage distilled_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --aggregator {input.aggregator} --logits {input.logits}"
        " --start {input.start} --public {input.public}"
        " --server-validation {input.server_validation} --info {input.info} --output {output}"


rule feature_moments:
    input:
        unpack(lambda w: one_shot.FEATURE_MOMENTS.job(line_of(w), client_of(w)).inputs),
    output:
        "results/moments/{line}/{who}.safetensors",
    log:
        "results/logs/feature_moments/{line}/{who}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("feature_moments"),
        client=client_of,
    message:
        "{wildcards.who} measures its features ({wildcards.line})"
    shell:
        "fedstage feature_moments --log {log} --fingerprint {params.source}"
        " --line {input.line} --client {params.client} --data {input.data}"
        " --clients {input.clients} --start {input.start} --info {input.info} --output {output}"


rule closed_form_model:
    input:
        unpack(lambda w: one_shot.CLOSED_FORM_MODEL.job(line_of(w)).inputs),
    output:
        model="results/distilled_models/{line}/model.safetensors",
        rounds="results/distilled_models/{line}/rounds.parquet",
    log:
        "results/logs/closed_form_model/{line}.log",
    wildcard_constraints:
        line=CLOSED_FORM,
    params:
        source=source("closed_form_model"),
    message:
        "a head of moments ({wildcards.line})"
    shell:
        "fedstage closed_form_model --log {log} --fingerprint {params.source}"
        " --line {input.line} --moments {input.moments} --start {input.start}"
        " --output {output.model} --rounds {output.rounds}"


rule client_generator:
    input:
        unpack(lambda w: generated.CLIENT_GENERATOR.job(line_of(w), client_of(w)).inputs),
    output:
        "results/generators/{line}/{who}.safetensors",
    log:
        "results/logs/client_generator/{line}/{who}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("client_generator"),
        client=client_of,
    message:
        "{wildcards.who} trains a generator ({wildcards.line})"
    shell:
        "fedstage client_generator --log {log} --fingerprint {params.source}"
        " --line {input.line} --client {params.client} --data {input.data} --info {input.info}"
        " --clients {input.clients} --output {output}"


rule generated:
    input:
        unpack(lambda w: generated.GENERATED_IMAGES.job(line_of(w)).inputs),
    output:
        images="results/generated/{line}/train.safetensors",
        histogram="results/generated/{line}/label_histogram.parquet",
        picture="results/generated/{line}/images.png",
        rounds="results/generated/{line}/rounds.parquet",
    log:
        "results/logs/generated/{line}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("generated"),
    message:
        "images of {wildcards.line}"
    shell:
        "fedstage generated --log {log} --fingerprint {params.source}"
        " --line {input.line} --info {input.info} --generators {input.generators}"
        " --output {output.images} --histogram {output.histogram} --picture {output.picture}"
        " --rounds {output.rounds}"


rule synthesised:
    input:
        unpack(lambda w: generated.SYNTHESISED_IMAGES.job(line_of(w)).inputs),
    output:
        images="results/synthesised/{line}/train.safetensors",
        histogram="results/synthesised/{line}/label_histogram.parquet",
        picture="results/synthesised/{line}/images.png",
        student="results/synthesised/{line}/student.safetensors",
        weights="results/synthesised/{line}/weights.safetensors",
    log:
        "results/logs/synthesised/{line}.log",
    threads: threads
    resources:
        gpu=gpus,
    params:
        source=source("synthesised"),
    message:
        "images against an ensemble ({wildcards.line})"
    shell:
        "fedstage synthesised --log {log} --fingerprint {params.source}"
        " --line {input.line} --info {input.info} --models {input.models} --start {input.start}"
        " --output {output.images} --histogram {output.histogram} --picture {output.picture}"
        " --student {output.student} --weights {output.weights}"
