"""Tables, figures, claims and whatever else is made of the runs of an experiment at a scale.

All read its description, of which the plan says what else a stage reads (`given`).
"""


def shown(path, caption, result):
    """Return a file that Snakemake's report shows."""
    return report(
        path,
        caption=f"../report/{caption}.rst",
        category="{experiment}",
        labels={"result": result, "scale": "{scale}"},
    )


def figure(name, caption, result):
    """Return the files of a figure, of which the report shows the first."""
    first, *others = files_at(figure_files(name))
    return [shown(first, caption, result), *others]


def choice_of(wildcards):
    """Return the choice of a description: which candidates are compared, and by what."""
    return explained(find, CATALOGUE.choices, wildcards.choice, "choices")


rule choice:
    """Take the candidate that is most accurate on validation samples."""
    input:
        description=lambda w: local(choice_file(w.choice)),
        source=local(Source("choice").file),
        validation=lambda w: [metrics_of(one) for one in choice_of(w).compared],
        metrics=lambda w: [metrics_of(one) for one in choice_of(w).candidates],
    output:
        output="results/choices/{choice}/metrics.parquet",
        chosen="results/choices/{choice}/chosen.json",
    log:
        "results/logs/choice/{choice}.json",
    message:
        "choice {wildcards.choice}"
    shell:
        "fedstage run choice {input.description}"


rule run_scores:
    """Put the metrics of an experiment's runs into one file."""
    input:
        unpack(given("run_scores")),
        metrics=of_runs("metrics", "over_rounds"),
        participants=participants,
    output:
        scores="results/tables/{experiment}/{scale}.scores.csv",
    log:
        "results/logs/run_scores/{experiment}/{scale}.json",
    message:
        "run_scores of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run run_scores {input.runs}"


rule tables:
    """Put the scores of an experiment into a table."""
    input:
        unpack(given("tables")),
    output:
        csv="results/tables/{experiment}/{scale}.csv",
        parquet="results/tables/{experiment}/{scale}.parquet",
        markdown="results/tables/{experiment}/{scale}.md",
        html=shown("results/tables/{experiment}/{scale}.html", "table", "table"),
        latex="results/tables/{experiment}/{scale}.tex",
    log:
        "results/logs/tables/{experiment}/{scale}.json",
    message:
        "tables of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run tables {input.runs}"


rule figures:
    """Draw accuracy over rounds, and the partition."""
    input:
        unpack(given("figures")),
        partitions=of_runs("partition"),
        infos=of_runs("info"),
    output:
        samples="results/figures/{experiment}/{scale}_partition.csv",
        accuracy=figure("accuracy", "accuracy", "accuracy over rounds"),
        partition=figure("partition", "partition", "partition"),
    log:
        "results/logs/figures/{experiment}/{scale}.json",
    message:
        "figures of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run figures {input.runs}"


rule comparison:
    """Draw measured against published accuracy."""
    input:
        unpack(given("comparison")),
    output:
        figure=figure("published", "published", "measured beside published"),
    log:
        "results/logs/comparison/{experiment}/{scale}.json",
    message:
        "comparison of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run comparison {input.runs}"


rule sweep:
    """Draw accuracy over the values of an axis."""
    input:
        unpack(given("sweep")),
    output:
        figure=figure("over", "sweep", "accuracy over an axis"),
    log:
        "results/logs/sweep/{experiment}/{scale}.json",
    message:
        "sweep of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run sweep {input.runs}"


rule claims:
    """Judge a paper's claims by the scores of an experiment, and what was measured besides."""
    input:
        unpack(given("claims")),
    output:
        csv="results/claims/{experiment}/{scale}.csv",
        parquet="results/claims/{experiment}/{scale}.parquet",
        markdown="results/claims/{experiment}/{scale}.md",
        html=shown("results/claims/{experiment}/{scale}.html", "claims", "claims"),
    log:
        "results/logs/claims/{experiment}/{scale}.json",
    message:
        "claims of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run claims {input.runs}"


rule communication:
    """Add up what clients send and receive, and draw accuracy against it."""
    input:
        unpack(given("communication")),
        metrics=of_runs("metrics", "over_rounds"),
        validation=of_runs("validation"),
        files=lambda w: files_of(CATALOGUE, w.experiment, w.scale),
    output:
        csv="results/communication/{experiment}/{scale}.csv",
        parquet="results/communication/{experiment}/{scale}.parquet",
        markdown="results/communication/{experiment}/{scale}.md",
        html=shown(
            "results/communication/{experiment}/{scale}.html", "communication", "communication"
        ),
        by_run="results/communication/{experiment}/{scale}.runs.parquet",
        figure=figure("communication", "accuracy_of_bytes", "accuracy against communication"),
    log:
        "results/logs/communication/{experiment}/{scale}.json",
    message:
        "communication of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run communication {input.runs}"


rule costs:
    """Put accuracy, bytes, seconds and memory of each method into a table."""
    input:
        unpack(given("costs")),
        metrics=of_runs("metrics"),
        participants=participants,
    output:
        csv="results/costs/{experiment}/{scale}.csv",
        parquet="results/costs/{experiment}/{scale}.parquet",
        markdown="results/costs/{experiment}/{scale}.md",
        html=shown(
            "results/costs/{experiment}/{scale}.html", "costs", "what methods reach and cost"
        ),
        figure=figure("costs", "costs", "accuracy against bytes at the end"),
    log:
        "results/logs/costs/{experiment}/{scale}.json",
    message:
        "costs of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run costs {input.runs}"


rule properties:
    """Put the complexity and communication of methods into a table."""
    input:
        unpack(given("properties")),
    output:
        markdown="results/properties/{experiment}/{scale}.md",
        csv=shown("results/properties/{experiment}/{scale}.csv", "properties", "properties"),
    log:
        "results/logs/properties/{experiment}/{scale}.json",
    message:
        "properties of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run properties {input.runs}"


rule simulation:
    """Schedule the jobs of rounds on clients and a server."""
    input:
        unpack(given("simulation")),
    output:
        csv="results/simulation/{experiment}/{scale}.csv",
        figure=figure("schedule", "schedule", "schedule"),
    log:
        "results/logs/simulation/{experiment}/{scale}.json",
    message:
        "simulation of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run simulation {input.runs}"


rule round_times:
    """Put the seconds of a round's jobs into a table, from the records of jobs behind the metrics."""
    input:
        unpack(given("round_times")),
        metrics=of_runs("metrics"),
    output:
        markdown="results/round_times/{experiment}/{scale}.md",
        csv=shown(
            "results/round_times/{experiment}/{scale}.csv",
            "round_times",
            "measured seconds of a round",
        ),
        parquet="results/round_times/{experiment}/{scale}.parquet",
        by_run="results/round_times/{experiment}/{scale}.runs.parquet",
    log:
        "results/logs/round_times/{experiment}/{scale}.json",
    message:
        "round_times of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run round_times {input.runs}"


rule retention_summary:
    """Put what methods forget into a table, and draw it."""
    input:
        unpack(given("retention_summary")),
        measures=retention,
    output:
        csv="results/retention/{experiment}/{scale}.csv",
        parquet="results/retention/{experiment}/{scale}.parquet",
        markdown="results/retention/{experiment}/{scale}.md",
        html=shown("results/retention/{experiment}/{scale}.html", "retention", "what is forgotten"),
        by_run="results/retention/{experiment}/{scale}.runs.parquet",
        overlap="results/retention/{experiment}/{scale}.overlap.csv",
        curves=figure("retention", "forgetting_curves", "what is forgotten, over rounds"),
    log:
        "results/logs/retention_summary/{experiment}/{scale}.json",
    message:
        "retention_summary of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run retention_summary {input.runs}"


rule clients:
    """Put the accuracies of clients and classes into a table."""
    input:
        unpack(given("clients")),
        measures=of_runs("clients"),
        infos=of_runs("info"),
    output:
        csv="results/clients/{experiment}/{scale}.csv",
        markdown="results/clients/{experiment}/{scale}.md",
    log:
        "results/logs/clients/{experiment}/{scale}.json",
    message:
        "clients of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run clients {input.runs}"


rule report:
    """Show table, figures, claims and their origin in one HTML file."""
    input:
        unpack(given("report")),
    output:
        output="results/report/{experiment}/{scale}.html",
    log:
        "results/logs/report/{experiment}/{scale}.json",
    message:
        "report of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run report {input.runs}"
