"""Tables, figures, claims and whatever else is made of the runs of an experiment at a scale.

All read its description, of which the plan says what else a stage reads (`given`).
"""


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


rule scores:
    """Put all scores of an experiment's runs into one file."""
    input:
        unpack(given("scores")),
        participants=participants,
        right=right,
        traffic=traffic,
    output:
        scores="results/tables/{experiment}/{scale}.scores.parquet",
    log:
        "results/logs/scores/{experiment}/{scale}.json",
    message:
        "scores of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run scores {input.runs}"


rule costs:
    """Put seconds, bytes and memory of an experiment's runs into one file, from jobs' records."""
    input:
        unpack(given("costs")),
        traffic=traffic,
    output:
        costs="results/tables/{experiment}/{scale}.costs.parquet",
    log:
        "results/logs/costs/{experiment}/{scale}.json",
    message:
        "costs of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run costs {input.runs}"


rule table:
    """Put scores, claims, communication, costs and more of an experiment into a table."""
    input:
        unpack(given("table")),
    output:
        files=[
            "results/{shown}/{experiment}/{scale}.md",
            in_report("results/{shown}/{experiment}/{scale}.csv", "{shown}"),
        ],
    log:
        "results/logs/table/{experiment}/{scale}.{shown}.json",
    wildcard_constraints:
        shown="|".join(TABLES),
    message:
        "table ({wildcards.shown}) of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run table {input.runs} shown={wildcards.shown}"


rule table_in_another_format:
    """Put something of an experiment into a table as HTML, LaTeX or Parquet."""
    input:
        unpack(given("table")),
    output:
        files="results/{shown}/{experiment}/{scale}.{format}",
    log:
        "results/logs/table/{experiment}/{scale}.{shown}.{format}.json",
    wildcard_constraints:
        shown="|".join(TABLES),
        format="|".join(FURTHER["table"]),
    message:
        "table ({wildcards.shown}, {wildcards.format}) of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run table {input.runs} shown={wildcards.shown} formats={wildcards.format}"


rule figure:
    """Draw accuracy over rounds or bytes, the partition and more of an experiment."""
    input:
        unpack(given("figure")),
    output:
        files=in_report("results/figures/{experiment}/{scale}_{shown}.png", "{shown}"),
    log:
        "results/logs/figure/{experiment}/{scale}.{shown}.json",
    wildcard_constraints:
        shown="|".join(FIGURES),
    message:
        "figure ({wildcards.shown}) of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run figure {input.runs} shown={wildcards.shown}"


rule figure_in_another_format:
    """Draw something of an experiment as SVG or PDF."""
    input:
        unpack(given("figure")),
    output:
        files="results/figures/{experiment}/{scale}_{shown}.{format}",
    log:
        "results/logs/figure/{experiment}/{scale}.{shown}.{format}.json",
    wildcard_constraints:
        shown="|".join(FIGURES),
        format="|".join(FURTHER["figure"]),
    message:
        "figure ({wildcards.shown}, {wildcards.format}) of {wildcards.experiment},"
        " scale {wildcards.scale}"
    shell:
        "fedstage run figure {input.runs} shown={wildcards.shown} formats={wildcards.format}"


rule properties:
    """Put the complexity and communication of methods into a table."""
    input:
        unpack(given("properties")),
    output:
        markdown="results/properties/{experiment}/{scale}.md",
        csv=in_report("results/properties/{experiment}/{scale}.csv", "properties"),
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
        figure=in_report("results/figures/{experiment}/{scale}_schedule.png", "schedule"),
    log:
        "results/logs/simulation/{experiment}/{scale}.json",
    message:
        "simulation of {wildcards.experiment}, scale {wildcards.scale}"
    shell:
        "fedstage run simulation {input.runs}"


rule report:
    """Show tables, figures, claims and their origin in one HTML file."""
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
