"""Drawing noise words."""

import hypothesis.extra.numpy as hnp
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxemb.static import noise


def probabilities(table):
    """What an alias table draws, summed over its cells."""
    size = len(table["alias"])
    out = np.array(table["threshold"], np.float64)
    np.add.at(out, table["alias"], 1 - np.array(table["threshold"], np.float64))
    return out / size


@given(
    hnp.arrays(
        np.float64, st.integers(1, 50), elements=st.floats(0, 1e6, width=32)
    ).filter(lambda w: w.sum() > 0)
)
def test_a_table_holds_the_distribution(weights):
    table = noise.alias_table(weights)
    np.testing.assert_allclose(probabilities(table), weights / weights.sum(), atol=1e-6)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -1.0], [np.inf, 1.0]])
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match="finite"):
        noise.alias_table(np.array(weights))


def test_draws_pass_a_chi_square_test():
    counts = np.array([1000, 300, 100, 30, 10, 3, 1])
    table = noise.unigram(counts, power=0.75)
    drawn = noise.draw(table, jax.random.key(3), (1_000_000,))
    expected = counts**0.75 / np.sum(counts**0.75)
    observed = np.bincount(np.asarray(drawn), minlength=len(counts))
    assert stats.chisquare(observed, expected * drawn.size).pvalue > 0.01
    # The test would see a wrong power.
    flat = counts**0.5 / np.sum(counts**0.5)
    assert stats.chisquare(observed, flat * drawn.size).pvalue < 1e-6
