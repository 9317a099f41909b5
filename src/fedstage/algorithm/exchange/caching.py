"""Labels of public samples that are kept across rounds (SCARLET, Azuma et al. 2026).

Both the samples of a round and the cache follow from the seed, so server and clients compute which
samples have labels without communication. With D = `duration`, a label of round s is used in the
rounds before s + D; then clients are asked again. The new label either replaces the old one
(`renewed`), or is used once and not cached, so that the sample is cached at its next use
(`forgotten`), as in the released code. There the label requested in round s + D is not used,
because two places use different bounds; here it is used.
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
    """Return the samples (int64) whose labels clients are asked for in a round, and the cache.

    The cache holds the round in which each sample's cached label was made, int64 [count]; 0 for
    none.
    """
    settings, made = cache_of(recipe), torch.zeros(count, dtype=torch.int64)
    asked = torch.empty(0, dtype=torch.int64)
    for past in range(1, round_ + 1):
        drawn = samples_of(recipe, count, past)
        used = torch.arange(count) if drawn is None else drawn
        label_round = made[used]
        serves = (label_round > 0) & (past < label_round + settings.duration)
        asked, label_round = used[~serves], label_round[~serves]
        made[asked] = torch.where(label_round > 0, 0, past)
    return asked, made


def labels_sent(recipe: Recipe, count: int, round_: int, since: int | None) -> int:
    """Return how many labels a participant receives if it last took part `since` rounds before.

    These are the labels that it lacks of the last round's cache, and the labels that are used once.
    """
    if round_ == 1:
        return 0
    asked, made = after_round(recipe, count, round_ - 1)
    last = 1 if since is None else round_ - since  # it has the labels of earlier rounds
    return int((made >= last).sum()) + int((made[asked] == 0).sum())
