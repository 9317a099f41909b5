"""Models drawn from a distribution over the clients' models (FedBE).

A module a distribution, each with `sample(models, ..., generator)`: plain functions over state
dicts, in float64.
"""
