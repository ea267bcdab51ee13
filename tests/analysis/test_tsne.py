"""t-SNE beside scikit-learn's exact method."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxemb.analysis import tsne
from jaxemb.errors import InputError


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=6, size=(4, 10))
    return np.repeat(centres, 12, axis=0) + rng.normal(size=(48, 10))


def test_neighbourhoods_have_the_perplexity(clusters):
    """Each row's distribution before it is made symmetric, by its own entropy."""
    joint = tsne.neighbourhoods(clusters, 8.0)
    np.testing.assert_allclose(joint, joint.T)
    assert joint.sum() == pytest.approx(1)
    distances = np.square(clusters[:, None] - clusters[None]).sum(axis=-1)
    # A precision found by scipy for word 0 gives the same conditional row.
    from scipy import optimize

    def row(log_precision):
        p = np.exp(-(distances[0, 1:] - distances[0, 1:].min()) * np.exp(log_precision))
        return p / p.sum()

    best = optimize.brentq(
        lambda x: stats.entropy(row(x)) - np.log(8.0), -20, 10, xtol=1e-12
    )
    rest = joint[0, 1:] * 2 * len(clusters) - row(best)  # p(0|j) of the others
    assert rest.min() > -1e-6
    assert np.exp(stats.entropy(row(best))) == pytest.approx(8.0)


def test_it_ends_as_low_as_scikit_learn(clusters):
    manifold = pytest.importorskip("sklearn.manifold")
    theirs = manifold.TSNE(
        perplexity=8.0, method="exact", init="random", max_iter=1000, random_state=0
    ).fit(clusters)
    joint = jnp.float32(tsne.neighbourhoods(clusters, 8.0))
    # Their places have, by our measure, the divergence that they report.
    same = tsne.divergence(jnp.float32(theirs.embedding_), joint)
    assert float(same) == pytest.approx(float(theirs.kl_divergence_), rel=0.01)
    ours = tsne.tsne(clusters, perplexity=8.0, seed=1)
    assert float(tsne.divergence(jnp.float32(ours), joint)) < 1.1 * float(same)
    # Every word's nearest is of its own cluster.
    apart = np.square(ours[:, None] - ours[None]).sum(axis=-1)
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_array_equal(apart.argmin(axis=1) // 12, np.arange(48) // 12)


def test_a_perplexity_that_cannot_be(clusters):
    with pytest.raises(InputError, match="expected 1 to 47"):
        tsne.neighbourhoods(clusters, 60.0)
