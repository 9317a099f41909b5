"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

`student` is the training, `transfers` are its losses; the other modules are its parts.
`settings.exchange` determines which global models are students, `plan.rounds` from which round on.
"""
