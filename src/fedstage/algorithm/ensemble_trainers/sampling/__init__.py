"""Models drawn from a distribution over the clients' models (FedBE).

A module a distribution: pure functions over state dicts, in float64. `draw` chooses among them.
"""
