"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

`student` is the training, `transfers` are its losses; the other modules are its parts.
`settings.exchange` determines which global models are students, `plan.taught` from which round on.
"""
