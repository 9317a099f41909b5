"""A round of federated learning, in the order in which the folders follow one another.

Group k of round t, from w*_{t-1,k}, the model that the round before left:

1. `exchange`: what travels between clients and server, and what both keep from round to round.
2. `local_trainers`: each participant trains from w*_{t-1,k} on its own samples and sends an update.
3. `aggregation`: the server averages the group's updates, or takes an optimiser's step: w_{t,k}.
4. `ensemble_trainers`: models of clients, groups and rounds form the ensemble that is the teacher.
5. `global_trainers`: chosen models learn from the teacher on public images: w*_{t,k}.

In place of 2 to 5, `one_shot` fits an aggregator to the logits of clients' models that were each
trained once, to the end; a student may learn from it. Folders import only from those before them.
"""
