"""What rules read: the equations' inputs, looked up in the graph of files."""


def evaluated_rounds_of(wildcards):
    return graph.evaluated_rounds(int(wildcards.rounds), int(wildcards.every))


def evaluated_models(wildcards):
    """Return the global models w*_{t,0}, or the logits of the ensembles' members."""
    line, rounds = line_of(wildcards), evaluated_rounds_of(wildcards)
    if wildcards.evaluated == "global_model":
        return [graph.global_model(line, round, 0) for round in rounds]
    ensemble = parse_evaluated(wildcards.evaluated)
    logits = (
        path
        for round in rounds
        for path in graph.member_logits(line, round, ensemble, wildcards.role)
    )
    return list(dict.fromkeys(logits))


def evaluated_participants(wildcards):
    line = line_of(wildcards)
    return [
        graph.participants_table(line, round, group)
        for round in evaluated_rounds_of(wildcards)
        for group in range(line.global_models)
    ]


def previous_model(wildcards):
    """Return w*_{t-1,k}: what round t of group k starts from."""
    return graph.global_model(line_of(wildcards), int(wildcards.round) - 1, int(wildcards.group))


def previous_state(wildcards):
    """Return the group's own round state of round t-1, where any is kept."""
    return graph.own_state_before(line_of(wildcards), int(wildcards.round), int(wildcards.group))


def previous_states(wildcards):
    """Return the round states of round t-1 that a participant reads, where any are kept."""
    return graph.states_before(line_of(wildcards), int(wildcards.round), int(wildcards.group))


def member_models(wildcards):
    """Return the models whose logits are wanted, or from which models are drawn."""
    line, round, group = line_of(wildcards), int(wildcards.round), int(wildcards.group)
    return graph.member_models(line, round, group, wildcards.members)


def logits_images(wildcards):
    """Return the images: of a role, held out, or the training images of another data set."""
    line, images = line_of(wildcards), wildcards.images
    if images in ("test", "test_own", "validation"):
        return graph.evaluation_data(line, images)
    if images in ("held_out", "server_validation"):
        return graph.data_file(line.data, images)
    return graph.data_file(found("data", wildcards, "images"), "train")


def known_place(wildcards):
    """Return the experiment and scale of a result."""
    place = wildcards.experiment, wildcards.scale
    if place not in CATALOGUE.runs:
        raise WorkflowError("{}/{}: no such experiment and scale".format(*place))
    return place


def described(wildcards):
    """Return the experiment's runs: their axes, and where their metrics are."""
    return describe_runs(CATALOGUE, *known_place(wildcards))


def defined(wildcards):
    """Return the experiment's lines, for what follows from settings."""
    name, scale = known_place(wildcards)
    try:
        return define(name, scale, CATALOGUE.experiments[name], CATALOGUE.runs[name, scale])
    except FedstageError as error:
        raise WorkflowError(str(error)) from None


def communicated(wildcards):
    """Return the experiment's runs, as far as their communication goes."""
    return describe_communication(CATALOGUE, *known_place(wildcards))


def traced(wildcards):
    """Return where the clients are that an experiment forgets."""
    name, scale = known_place(wildcards)
    if not forgets(CATALOGUE, name, scale):
        raise WorkflowError(f"{name}/{scale}: no run forgets a client")
    about = {"experiment": name, "scale": scale, "title": CATALOGUE.experiments[name].title}
    return about | {"traces": traces_of(CATALOGUE, name, scale)}


def claimed(wildcards):
    """Return the claims on an experiment."""
    claims = claims_on(CATALOGUE, wildcards.experiment)
    if not claims:
        raise WorkflowError(f"{wildcards.experiment}: no claim is about it")
    return {"claims": claims}


def of_every_run(key):
    """Return an input function: a file of each run of the experiment, each named once."""

    def files(wildcards):
        return list(dict.fromkeys(run[key] for run in described(wildcards)["runs"]))

    return files


def timed_metrics(wildcards):
    """Return the metrics of runs whose jobs are measured, each by itself."""
    if GRANULARITY != "participant" or CLIENTS_PER_JOB != 1:
        name = f"round_times of {wildcards.experiment}/{wildcards.scale}"
        raise WorkflowError(
            f"{name}: execution.granularity = {GRANULARITY!r}, clients_per_job = "
            f"{CLIENTS_PER_JOB!r}: must be 'participant' and 1, so that each job measures itself"
        )
    return of_every_run("metrics")(wildcards)


def measurements(wildcards):
    """Return the tables of each run's seconds and bytes, where the experiment measures them."""
    name, scale = known_place(wildcards)
    return [
        f"results/{kind}/{name}/{scale}.runs.parquet"
        for kind in ("round_times", "communication")
        if kind in CATALOGUE.experiments[name].results
    ]


def local_client(wildcards):
    """Return the number of the client that trains alone, None for the pooled data."""
    who = wildcards.who
    return None if who == "pooled" else int(who.removeprefix("client_"))


def initial_weights(wildcards):
    """Return the initial model that a client, or the pooled data, starts from."""
    return graph.local_start(local_line_of(wildcards), local_client(wildcards))


def asked_model(wildcards):
    """Return the model of a client that is asked, in the precision of the logits."""
    return graph.asked_models(asked_line_of(wildcards))[local_client(wildcards)]


def scored_models(wildcards):
    """Return the models that are scored, in a precision: of all clients, of one, of pooled data."""
    try:
        models = graph.scored_models(asked_line_of(wildcards))
        return find(models, wildcards.who, f"scores of {wildcards.line}:")
    except FedstageError as error:
        raise WorkflowError(str(error)) from None


def aggregated_models(wildcards):
    """Return the models of the clients whose logits are aggregated."""
    line = aggregator_of(wildcards)
    models = graph.local_models(local_line(line))
    return [models[client] for client in members(line)]


def fitted(part):
    """Return an input function: what an aggregator learns from, or is stopped by, if anything."""

    def files(wildcards):
        read = graph.aggregator_reads(aggregator_of(wildcards))
        return read.get(part, [])

    return files
