"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

`student` is the training, `transfers` are its losses; the other modules are its parts. Which global
models are students is in `settings.exchange`, from which round on in `plan.taught`.
"""
