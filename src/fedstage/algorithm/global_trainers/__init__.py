"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

`student` is the training, `transfers` are its losses; the other modules are its parts.
`protocol.teaching` says which global models are students, `protocol.rounds` from which round on.
"""
