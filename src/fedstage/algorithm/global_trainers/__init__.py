"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

`student` is the training, `transfers` are its losses; the other modules are its parts. Which global
models are students, and from which round on, decides the graph: see `students` and
`first_distillation` in `plan.sharing`.
"""
