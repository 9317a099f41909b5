"""One-shot methods: clients train fully once, and the server combines the models' logits.

`client_models` computes the logits, `aggregators` are the rules that combine them to a prediction,
`aggregator_training` trains their parameters, `fitting` puts these together, and `prediction`
applies the result. `global_trainers.transfers` defines what a student learns from it.
"""
