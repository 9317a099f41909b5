"""Local training, a job a cohort: several participants of a group, with the same files.

Which slots make a cohort differs with participants and groups: each cohort is a rule, for the lines
that have it.
"""

ROUND_FOLDER = "results/training/{line}/round_{round}/group_{group}"
COHORTS = cohorts_of(asked_runs(CATALOGUE, sys.argv), CLIENTS_PER_JOB)

for (group, slots), names in COHORTS.items():
    updates = [f"{ROUND_FOLDER}/slot_{slot}.safetensors" for slot in slots]

    rule:
        name:
            f"cohort_of_group_{group}_slots_{slots[0]}_to_{slots[-1]}"
        input:
            line="results/training/{line}/line.yaml",
            data=lambda w: graph.data_file(line_of(w).data, "train"),
            info=lambda w: graph.data_file(line_of(w).data, "info"),
            clients=lambda w: graph.clients_table(line_of(w)),
            participation=lambda w: graph.participation_table(line_of(w), int(w.round)),
            start=previous_model,
            state=previous_states,
        output:
            updates if CATALOGUE.config.keep == "all" else temp(updates),
        log:
            f"results/logs/cohort/{{line}}/round_{{round}}/group_{{group}}/slots_{slots[0]}.log",
        wildcard_constraints:
            line="|".join(names),
            group=str(group),
        threads: lambda w: line_of(w).numerics.threads
        resources:
            gpu=lambda w: gpus(line_of(w)),
        params:
            source=lambda w: source_of(line_of(w), "local_training"),
            # Not compared with an earlier run's, which may have had other cohorts.
            slots=lambda w, output, slots=slots: slots,
        message:
            f"round {{wildcards.round}}: participants {', '.join(map(str, slots))} train"
            " ({wildcards.line})"
        shell:
            "fedstage cohort --log {log} --fingerprint {params.source}"
            " --line {input.line} --round {wildcards.round}"
            " --group {wildcards.group} --slots {params.slots} --data {input.data}"
            " --info {input.info} --clients {input.clients} --participation {input.participation}"
            " --start {input.start} --state {input.state} --outputs {output}"
