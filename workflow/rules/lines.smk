"""Settings of lines, as files beside what they determine."""


rule line:
    output:
        "results/training/{line}/line.yaml",
    log:
        "results/logs/line/{line}.log",
    localrule: True
    params:
        source=stage_fingerprint("line"),
        settings=lambda w: as_json(canonical(line_of(w))),
    message:
        "line {wildcards.line}"
    shell:
        "fedstage line --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"


rule local_line:
    output:
        "results/local_models/{line}/line.yaml",
    log:
        "results/logs/local_line/{line}.log",
    localrule: True
    params:
        source=stage_fingerprint("line"),
        settings=lambda w: as_json(canonical(local_line_of(w))),
    message:
        "line {wildcards.line}"
    shell:
        "fedstage line --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"


rule aggregator_line:
    output:
        "results/aggregators/{line}/line.yaml",
    log:
        "results/logs/aggregator_line/{line}.log",
    localrule: True
    params:
        source=stage_fingerprint("line"),
        settings=lambda w: as_json(canonical(aggregator_of(w))),
    message:
        "line {wildcards.line}"
    shell:
        "fedstage line --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"


rule student_line:
    output:
        "results/distilled_models/{line}/line.yaml",
    log:
        "results/logs/student_line/{line}.log",
    localrule: True
    params:
        source=stage_fingerprint("line"),
        settings=lambda w: as_json(canonical(student_of(w))),
    message:
        "line {wildcards.line}"
    shell:
        "fedstage line --log {log} --fingerprint {params.source}"
        " --settings {params.settings:q} --output {output}"
