"""One-shot methods: clients train once, to the end; the server combines the models' logits.

`client_models` computes the logits, `aggregators` are the rules that combine them to a prediction,
`aggregator_training` trains their parameters, `fitting` puts these together, `prediction` applies
the result, and `transfers` are the losses of a student that learns from it.
"""
