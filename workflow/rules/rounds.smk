"""The end of a round: aggregation of each group."""

AGGREGATE = (
    "fedstage aggregation --log {log} --fingerprint {params.source}"
    " --line {input.line} --info {input.info}"
    " --start {input.start} --updates {input.updates} --state {input.state}"
    " --public {input.public}"
    " --output {output.model} --participants {output.participants}"
)


rule aggregation:
    input:
        line="results/training/{line}/line.yaml",
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        start=previous_model,
        updates=lambda w: graph.updates(line_of(w), int(w.round), int(w.group)),
        state=previous_state,
        public=lambda w: graph.statistics_images(line_of(w)),
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
    log:
        "results/logs/aggregation/{line}/round_{round}/group_{group}.log",
    wildcard_constraints:
        line=rf"(?!{STATEFUL_LINE}/)[^/]+",
    threads: lambda w: line_of(w).numerics.threads if re_estimates(line_of(w)) else 1
    resources:
        gpu=lambda w: gpus(line_of(w)) if re_estimates(line_of(w)) else 0,
    params:
        source=lambda w: source_of(line_of(w), "aggregation"),
    message:
        "round {wildcards.round}: group {wildcards.group} aggregates ({wildcards.line})"
    shell:
        AGGREGATE


# The same stage for lines that keep state between rounds, such as SCAFFOLD's. The state is
# temporary, except in the rounds from which a run may go on.
rule aggregation_with_state:
    input:
        line="results/training/{line}/line.yaml",
        info=lambda w: graph.data_file(line_of(w).data, "info"),
        start=previous_model,
        updates=lambda w: graph.updates(line_of(w), int(w.round), int(w.group)),
        state=previous_state,
        public=lambda w: graph.statistics_images(line_of(w)),
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
        state=temp(f"{ROUND}/state.safetensors"),
    log:
        "results/logs/aggregation/{line}/round_{round}/group_{group}.log",
    wildcard_constraints:
        line=STATEFUL_LINE,
        round=rf"(?!(?:{KEPT_STATE})/)\d{{4}}",
    threads: lambda w: line_of(w).numerics.threads if re_estimates(line_of(w)) else 1
    resources:
        gpu=lambda w: gpus(line_of(w)) if re_estimates(line_of(w)) else 0,
    params:
        source=lambda w: source_of(line_of(w), "aggregation"),
    message:
        "round {wildcards.round}: group {wildcards.group} aggregates ({wildcards.line})"
    shell:
        f"{AGGREGATE} --new-state {{output.state}}"


use rule aggregation_with_state as aggregation_with_kept_state with:
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
        state=f"{ROUND}/state.safetensors",
    wildcard_constraints:
        line=STATEFUL_LINE,
        round=KEPT_STATE,
