"""Polychotomous voting (Ben-Yashar and Paroush 2001; FENS, Section 3.6).

    choose c maximising  sum_r B(c | r) p(r) prod_i P_i(v_i | r),     v_i = argmax_c z_{i,c}

P_i(c | r) is the rate at which model i votes for c where the truth is r. Each client counts all
models' votes on its own samples. The server adds the counts, which is the sample-weighted
combination; the paper only says "aggregates". Products are sums of logarithms, so nothing
underflows.

The prior p is uniform, as in the paper, and the benefit B is 1 for a right decision and 0 for any
other. The paper does not define the probability of a vote that was never counted: here 1 is added
to each count.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.settings.aggregators import Voting
from fedstage.weights import Weights

#: The least logarithm of a decision's benefit, relative to the best; less counts as 0.
FLOOR = -100.0


def parameters(settings: Voting, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return log P [M, C, C], votes by truths, and log p [C]."""
    assert known.votes is not None, "`fitting` counts them for this rule"
    classes, votes = known.classes, known.votes.double()
    truths = votes[0].sum(0)  # the same samples for every member
    competency = (votes + 1.0) / (truths + 1.0 * classes)
    prior = torch.full_like(truths, 1 / classes)
    return {"log_competency": competency.log().float(), "log_prior": prior.log().float()}


def combine(
    settings: Voting, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the logarithm of each decision's expected benefit, relative to the best one's."""
    evidence = parameters["log_prior"].double().expand(logits.shape[1], -1)
    competencies = parameters["log_competency"].double()
    for competency, votes in zip(competencies, logits.argmax(2), strict=True):
        evidence = evidence + competency[votes]
    relative = (evidence - evidence.amax(1, keepdim=True)).clamp(min=FLOOR)
    return relative.to(logits.dtype)
