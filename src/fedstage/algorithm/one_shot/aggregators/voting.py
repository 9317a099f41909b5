"""Polychotomous voting (Ben-Yashar and Paroush 2001; FENS, Section 3.6).

    choose c maximising  sum_r B(c | r) p(r) prod_i P_i(v_i | r),     v_i = argmax_c z_{i,c}

P_i(c | r) is the rate at which model i votes for c where the truth is r. Each client counts all
models' votes on its own samples. The server adds the counts, which is the sample-weighted
combination; the paper only says "aggregates". Products are sums of logarithms, so nothing
underflows.

The paper does not define the probability of a vote that was never counted. ``smoothed``: s is added
to each count. ``as_published``: the probability is 0 and excludes the class; for a class r without
samples, all votes are equally probable. ``as_released``: the same, but for such a class only votes
for classes with samples are equally probable, so that any other vote excludes all classes without
samples. Where all classes are excluded, class 0 wins, as in the released code.
"""

import torch

from fedstage.algorithm.one_shot.aggregators import Knowledge
from fedstage.errors import FedstageError
from fedstage.settings.aggregators import Voting
from fedstage.weights import Weights

#: The least logarithm of a decision's benefit, relative to the best; less counts as 0.
FLOOR = -100.0


def parameters(settings: Voting, known: Knowledge, generator: torch.Generator) -> Weights:
    """Return log P [M, C, C], votes by truths, and log p [C].

    Raises
    ------
    FedstageError
        If the prior or the benefit is for a different number of classes than the data's.
    """
    assert known.votes is not None, "`fitting` counts them for this rule"
    classes = known.classes
    for name, value in {"prior": settings.prior, "benefit": settings.benefit}.items():
        if isinstance(value, tuple) and len(value) != classes:
            raise FedstageError(
                f"aggregator.{name}: covers {len(value)} classes: must cover the data's {classes}"
            )
    truths = known.votes[0].sum(0)  # the same samples for every member
    competency = _competency(settings, known.votes.double(), truths.double())
    prior = _prior(settings, truths.double())
    return {"log_competency": competency.log().float(), "log_prior": prior.log().float()}


def combine(
    settings: Voting, parameters: Weights, logits: torch.Tensor, pixels: torch.Tensor | None
) -> torch.Tensor:
    """Return the logarithm of each decision's expected benefit, relative to the best one's."""
    evidence = parameters["log_prior"].double().expand(logits.shape[1], -1)
    competencies = parameters["log_competency"].double()
    for competency, votes in zip(competencies, logits.argmax(2), strict=True):
        evidence = evidence + competency[votes]
    benefit = evidence
    if settings.benefit is not None:
        gains = torch.tensor(settings.benefit, dtype=torch.float64, device=logits.device).log()
        benefit = (gains + evidence[:, None, :]).logsumexp(2)
    best = benefit.amax(1, keepdim=True)
    relative = (benefit - best).clamp(min=FLOOR)
    return torch.where(best.isinf(), torch.zeros_like(relative), relative).to(logits.dtype)


def _competency(settings: Voting, votes: torch.Tensor, truths: torch.Tensor) -> torch.Tensor:
    """Return P [M, C, C] from the votes and the samples [C] of each class."""
    classes = len(truths)
    if settings.estimate == "smoothed":
        return (votes + settings.smoothing) / (truths + settings.smoothing * classes)
    seen = (truths > 0).double()
    released = settings.estimate == "as_released"
    unknown = seen / seen.sum() if released else torch.full_like(seen, 1 / classes)
    return torch.where(truths > 0, votes / truths.clamp(min=1), unknown[:, None])


def _prior(settings: Voting, truths: torch.Tensor) -> torch.Tensor:
    if settings.prior == "uniform":
        return torch.full_like(truths, 1 / len(truths))
    prior = truths if settings.prior == "counted" else truths.new_tensor(settings.prior)
    return prior / prior.sum()
