"""Which of compared recipes is chosen."""


def choice_of(wildcards):
    return explained(find, CATALOGUE.choices, wildcards.choice, "choices")


rule choice:
    input:
        description=lambda w: local(choice_file(w.choice)),
        source=local(Source("choice").file),
        validation=lambda w: [metrics_of(one) for one in choice_of(w).compared],
        metrics=lambda w: [metrics_of(one) for one in choice_of(w).candidates],
    output:
        metrics=chosen_metrics_file("{choice}"),
        chosen=chosen_file("{choice}"),
    log:
        "results/logs/choice/{choice}.log",
    message:
        "choice {wildcards.choice}"
    shell:
        "fedstage run choice {input.description}"
