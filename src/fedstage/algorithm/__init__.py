"""The steps of a round of federated learning, and the folder of each.

Group k in round t starts from w*_{t-1,k}, its model after the previous round:

1. `exchange`: what clients and server send each other, and what both keep from round to round.
2. `local_trainers`: each participant trains from w*_{t-1,k} on its own samples and sends an update.
3. `aggregation`: the server averages the group's updates, or takes an optimiser's step: w_{t,k}.
   With `secure` aggregation it gets only their sum.
4. `ensemble_trainers`: models of clients, groups and rounds form the ensemble that is the teacher.
5. `global_trainers`: chosen models learn from the teacher on public images: w*_{t,k}.

In place of 2 to 5, `one_shot` fits an aggregator to the logits of clients' models, each of which is
fully trained once; a student may learn from the aggregator. `measures` scores models. A folder
imports only from folders
before it.

Where to find each equation (all files name their sources):

    FedDF    average of the teachers               `ensemble_trainers.teacher_logits`
             loss of the student                   `global_trainers.transfers.kl`
    FedSDD   average of a group, Eq. 2             `aggregation.averages`
             temporal ensemble, Eq. 5              `ensemble_trainers.aggregated`
             loss of the student, Eq. 4            `global_trainers.distillation`
    FedEED   Algorithm 1                           this list of folders
             teacher, section 3                    `ensemble_trainers`
             loss of the student, section 4        `global_trainers.distillation`
    Fed-ET   weighted consensus, Eqs. 2 and 3      `ensemble_trainers`
             diversity and loss, Eqs. 4, 6 to 10   `global_trainers.transfers.fedet`
    BKD      loss to the buffer, Eq. 4             `global_trainers.buffer`
             relative distance, section 4.3        `aggregation.averages`
    FENS     rules, Eq. 1                          `one_shot.aggregators`
             training, Algorithm 2                 `one_shot.aggregator_training.federated`

A paper that consists of one local trainer, rule or generator has a file of its name.
"""
