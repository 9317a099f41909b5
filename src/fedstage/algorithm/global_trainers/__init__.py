"""GlobalTrainer: (teacher, aggregated models, public data) -> next global models.

Which global models are students, and from which round on, decides what depends on what: that is in
`fedstage.plan.sharing` (`students`, `first_distillation`). How a student learns stands here.
"""
