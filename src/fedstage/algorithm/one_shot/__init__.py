"""One-shot methods: clients train once, to the end; the server combines the models' logits.

`client_models` computes the logits, `aggregators` are the rules that combine them to a prediction,
`aggregator_training` trains their parameters, `fitting` puts these together, and `prediction`
applies the result. What a student learns from it stands in `global_trainers.transfers`.
"""
