"""Heads in closed form from moments, against scikit-learn and all samples in one place."""

import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch.distributions import MultivariateNormal

from fedstage.algorithm.one_shot.gaussian_heads import NEVER, Moments, head, moments_of, total
from fedstage.settings.transfers import ClosedForm

N, WIDTH, CLASSES = 120, 6, 4


def samples(seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (N,), generator=generator)
    mixing = torch.randn(WIDTH, WIDTH, generator=generator)
    features = torch.randn(N, WIDTH, generator=generator) @ mixing + labels[:, None]
    return features, labels


def closed(**settings):
    return ClosedForm(name="closed_form", **settings)


def said(settings, moments, features):
    weights, biases = head(settings, moments)
    return features.double() @ weights.T + biases


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7])
def test_the_head_is_linear_discriminant_analysis(shrinkage):
    features, labels = samples()
    theirs = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Shrunk(shrinkage)).fit(
        features.numpy(), labels.numpy()
    )
    mine = said(closed(shrinkage=shrinkage), moments_of(features, labels, CLASSES), features)
    expected = torch.tensor(theirs.predict_log_proba(features.numpy()))
    torch.testing.assert_close(mine.double().log_softmax(1), expected, rtol=1e-3, atol=1e-3)


class Shrunk:
    """The covariance of a class, of which scikit-learn takes the mean over samples."""

    def __init__(self, shrinkage):
        self.shrinkage = shrinkage

    def get_params(self, deep=True):
        return {"shrinkage": self.shrinkage}

    def set_params(self, **changes):
        return Shrunk(**changes)

    def fit(self, of_class):
        own = torch.tensor(of_class).double()
        own = own - own.mean(0)
        covariance = own.T @ own / len(own)
        even = torch.eye(len(covariance)).double() * covariance.trace() / len(covariance)
        self.covariance_ = ((1 - self.shrinkage) * covariance + self.shrinkage * even).numpy()
        return self


def test_naive_bayes_is_the_density_of_independent_features():
    features, labels = samples()
    known = moments_of(features, labels, CLASSES)
    mine = said(closed(covariance="diagonal", shrinkage=0.0), known, features).log_softmax(1)
    exact = features.double()
    means = torch.stack([exact[labels == c].mean(0) for c in range(CLASSES)])
    variances = (exact - means[labels]).square().mean(0)
    joint = [
        MultivariateNormal(means[c], variances.diag()).log_prob(exact)
        + torch.log((labels == c).double().mean())
        for c in range(CLASSES)
    ]
    expected = torch.stack(joint, 1).log_softmax(1)
    torch.testing.assert_close(mine.double(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("clients", [1, 3, 40])
def test_however_samples_are_divided_the_head_is_that_of_all(clients):
    features, labels = samples()
    order = labels.argsort()  # each client has few classes
    parts = [moments_of(features[one], labels[one], CLASSES) for one in order.chunk(clients)]
    whole = head(closed(), moments_of(features, labels, CLASSES))
    for mine, theirs in zip(head(closed(), total(parts)), whole, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_class_that_nobody_has_is_never_said():
    features, labels = samples()
    labels = labels.clamp(max=CLASSES - 2)
    known = moments_of(features, labels, CLASSES)
    weights, biases = head(closed(), known)
    assert biases[-1] == NEVER
    assert not weights[-1].any()
    assert (said(closed(), known, features).argmax(1) != CLASSES - 1).all()


def test_a_covariance_without_inverse_gives_no_numbers():
    features, labels = samples()
    twice = torch.cat([features, features[:, :1]], 1)
    known = moments_of(twice[:5], labels[:5], CLASSES)
    singular = Moments(known.counts, known.sums.clone(), known.products.clone())
    singular.products[:, 0] = singular.products[0] = 0
    singular.sums[:, 0] = 0
    assert head(closed(shrinkage=0.0), singular)[0].isnan().any()
    assert head(closed(shrinkage=0.5), singular)[0].isfinite().all()
