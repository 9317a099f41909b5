"""Models drawn from a distribution over the clients' models (FedBE).

One module per distribution, with pure functions over state dicts, in float64. `draw` chooses among
them.
"""
