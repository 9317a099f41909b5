"""Labels of public samples that are kept over rounds (SCARLET, Azuma et al. 2026).

The samples of a round follow from the seed, and so does the cache: server and clients can compute
which samples have labels, and nothing is sent for it. With D = `duration`, a label of round s
serves the rounds before s + D; then clients are asked again. The new label is kept (`renewed`), or
serves once and leaves no entry, so that the sample is kept again when it is used next
(`forgotten`), as in the released code. There a label of s + D itself is asked for and then not
taken, because two places have different bounds; here it is taken.
"""

import torch

from fedstage.algorithm.exchange.public_samples import samples_of
from fedstage.settings.local_training import Digest, LabelCache
from fedstage.settings.recipes import Recipe


def cache_of(recipe: Recipe) -> LabelCache:
    """Return the settings of a recipe's cache."""
    assert isinstance(recipe.local, Digest), "only clients that exchange logits keep labels"
    assert recipe.local.cache is not None, "this recipe keeps none"
    return recipe.local.cache


def after_round(recipe: Recipe, count: int, round_: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the samples (int64) that clients are asked for in a round, of `count`, and the cache.

    That is the round in which the kept label of each sample was made, int64 [count]; 0 for none.
    """
    settings, made = cache_of(recipe), torch.zeros(count, dtype=torch.int64)
    asked = torch.empty(0, dtype=torch.int64)
    for past in range(1, round_ + 1):
        drawn = samples_of(recipe, count, past)
        used = torch.arange(count) if drawn is None else drawn
        label_round = made[used]
        serves = (label_round > 0) & (past < label_round + settings.duration)
        asked, label_round = used[~serves], label_round[~serves]
        gone = (label_round > 0) & (settings.expired == "forgotten")
        made[asked] = torch.where(gone, 0, past)
    return asked, made


def labels_sent(recipe: Recipe, count: int, round_: int, since: int | None) -> int:
    """Return how many labels a participant of a round gets, that took part `since` rounds before.

    They are all that it lacks to have the cache of the last round, and those that serve once.
    """
    if round_ == 1:
        return 0
    asked, made = after_round(recipe, count, round_ - 1)
    last = 1 if since is None else round_ - since  # it has the labels of earlier rounds
    return int((made >= last).sum()) + int((made[asked] == 0).sum())
