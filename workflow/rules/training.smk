"""A round: its participants train from their group's global model, and the server aggregates.

Included where a job trains participants. Where it trains several, each set of slots is a rule, for
the lines that have it.
"""

ROUND = "results/training/{line}/round_{round}/group_{group}"
LOG = "results/logs/{stage}/{{line}}/round_{{round}}/group_{{group}}"
# Round state is temporary, except in the rounds from which a run may go on.
STATEFUL = is_stateful_name()
KEPT_STATE = "|".join(f"{round:04d}" for round in state_rounds(CATALOGUE))

WHO = "participant {wildcards.slot} trains"
TRAININGS = [("local_training", "{slot}", ("{slot}",), "[^/]+", r"\d+")]
if EXECUTION.clients_per_job != 1:
    WHO = "participants {params.slots} train"
    TRAININGS = [
        (
            f"cohort_of_group_{group}_slots_{slots[0]}_to_{slots[-1]}",
            slots[0],
            slots,
            "|".join(names),
            group,
        )
        for (group, slots), names in cohorts_of(
            asked_runs(CATALOGUE, ARGUMENTS), EXECUTION.clients_per_job
        ).items()
    ]

for NAME, FIRST, SLOTS, LINES, GROUP in TRAININGS:
    UPDATES = [f"{ROUND}/slot_{slot}.safetensors" for slot in SLOTS]

    rule:
        name:
            NAME
        input:
            unpack(
                lambda w, first=FIRST: training.LOCAL_TRAINING.job(
                    *place(w), int(w.get("slot", first))
                ).inputs
            ),
        output:
            UPDATES if KEEP == "all" else temp(UPDATES),
        log:
            f"{LOG.format(stage='local_training')}/slot_{FIRST}.log",
        wildcard_constraints:
            line=LINES,
            group=str(GROUP),
        threads: threads
        resources:
            gpu=gpus,
        params:
            source=source("local_training"),
            # Takes `output`, so that it is not compared with that of an earlier run, whose jobs may
            # have trained other slots.
            slots=lambda w, output, slots=SLOTS: w.get("slot", slots),
        message:
            f"round {{wildcards.round}}: {WHO} ({{wildcards.line}})"
        shell:
            "fedstage local_training --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round}"
            " --group {wildcards.group} --slots {params.slots} --data {input.data}"
            " --info {input.info} --clients {input.clients} --participation {input.participation}"
            " --start {input.start} --state {input.state} --said {input.said}"
            " --public {input.public} --server-model {input.server_model}"
            " --history {input.history} --server-validation {input.server_validation}"
            " --outputs {output}"


rule aggregation:
    input:
        unpack(inputs_of(training.AGGREGATION)),
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
    log:
        f"{LOG.format(stage='aggregation')}.log",
    wildcard_constraints:
        line=rf"(?!{STATEFUL}/)[^/]+",
    threads: lambda w: threads(w) if re_estimates(line_of(w)) else 1
    resources:
        gpu=lambda w: gpus(w) if re_estimates(line_of(w)) else 0,
    params:
        source=source("aggregation"),
        state=lambda w, output: f"--new-state {output.state}" if "state" in output.keys() else "",
    message:
        "round {wildcards.round}: group {wildcards.group} aggregates ({wildcards.line})"
    shell:
        "fedstage aggregation --log {log} --fingerprint {params.source}"
        " --line {input.line} --info {input.info}"
        " --start {input.start} --updates {input.updates} --bases {input.bases}"
        " --state {input.state}"
        " --public {input.public} --output {output.model} --participants {output.participants}"
        " {params.state}"


# Lines that keep state between rounds, such as SCAFFOLD's.
use rule aggregation as aggregation_with_state with:
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
        state=temp(f"{ROUND}/state.safetensors"),
    wildcard_constraints:
        line=STATEFUL,
        round=rf"(?!(?:{KEPT_STATE})/)\d{{4}}",


use rule aggregation as aggregation_with_kept_state with:
    output:
        model=f"{ROUND}/aggregated.safetensors",
        participants=f"{ROUND}/participants.parquet",
        state=f"{ROUND}/state.safetensors",
    wildcard_constraints:
        line=STATEFUL,
        round=KEPT_STATE,
