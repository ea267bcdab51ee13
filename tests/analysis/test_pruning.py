"""Each figure beside probability, a loop or scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxemb import optim
from jaxemb.analysis import pruning
from jaxemb.errors import InputError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("share", "mass"), [(0.3, 0.0715), (0.5, 0.2035), (0.9, 0.7415)]
)
def test_mass_of_normal_weights(share, mass):
    """Check 4 of the card."""
    q = stats.norm.ppf((1 + share) / 2)
    assert 1 - np.exp(-(q**2) / 2) == pytest.approx(mass, abs=5e-5)
    found = pruning.pruned_magnitude_mass(RNG.normal(size=500_000), share)
    assert found == pytest.approx(mass, abs=2e-3)


def correlated(rho, n=400_000):
    first, noise = RNG.normal(size=(2, n))
    return first, rho * first + np.sqrt(1 - rho**2) * noise


magnitude = jax.jit(optim.magnitude_mask)


def mask(weights, share):
    return np.asarray(magnitude(weights.astype(np.float32), share))


@pytest.mark.parametrize(
    ("rho", "difference", "movement"), [(0.99, 0.063, 0.060), (0.999, 0.020, 0.020)]
)
def test_correlated_weights_move_and_differ_little(rho, difference, movement):
    """Check 5, its second half."""
    first, second = correlated(rho)
    found = pruning.mask_difference(mask(first, 0.6), mask(second, 0.6))
    assert found == pytest.approx(difference, abs=1e-3)
    moved = pruning.sort_order_movement(first, second).mean()
    assert moved == pytest.approx(movement, abs=1e-3)


def test_independent_masks_differ_by_chance():
    """Check 5, its first half."""
    first, second = correlated(0.0)
    found = pruning.mask_difference(mask(first, 0.6), mask(second, 0.6))
    assert found == pytest.approx(2 * 0.6 * 0.4, abs=3e-3)
    drawn = [
        np.asarray(optim.random_mask(jax.random.key(i), jnp.asarray(first), 0.6))
        for i in range(2)
    ]
    found = pruning.mask_difference(*drawn)
    assert found == pytest.approx(2 * 0.6 * 0.4, abs=3e-3)
    for one in drawn:
        assert (~one).sum() == int(0.6 * first.size)


def test_movement_of_a_new_order_and_of_none():
    """Check 6: (n^2 - 1) / 3 n^2, exactly over all orders of five."""
    import itertools

    start = np.arange(1, 6.0)
    every = [
        pruning.sort_order_movement(start, np.array(order)).mean()
        for order in itertools.permutations(start)
    ]
    assert np.mean(every) == pytest.approx((25 - 1) / (3 * 25))
    drawn = pruning.sort_order_movement(*RNG.normal(size=(2, 100_000)))
    assert drawn.mean() == pytest.approx(1 / 3, abs=3e-3)
    np.testing.assert_array_equal(pruning.sort_order_movement(start, -2 * start), 0)


def test_movement_by_rank_is_a_loop_over_ranks():
    before, after = RNG.normal(size=(2, 60))
    rank = {s: stats.rankdata(abs(w)) for s, w in (("start", before), ("end", after))}
    moved = abs(rank["end"] - rank["start"]) / 60
    for by, ranks in rank.items():
        found = pruning.movement_by_rank(before, after, 6, by)
        for part in range(6):
            own = (ranks > 10 * part) & (ranks <= 10 * (part + 1))
            assert found[part] == pytest.approx(moved[own].mean())
    both = [pruning.movement_by_rank(before, after, 1, by)[0] for by in rank]
    assert both[0] == pytest.approx(both[1])


def test_moments_are_scipys():
    values = RNG.gamma(2.0, size=(30, 40))
    found = pruning.weight_moments(values)
    flat = values.ravel()
    wanted = flat.mean(), flat.std(), stats.skew(flat), stats.kurtosis(flat)
    np.testing.assert_allclose(found, wanted)


def test_heads_blocks_and_sparsity():
    kept = np.ones((4, 6), bool)
    kept[:2, 2:4] = False
    assert pruning.head_sparsity_range(kept, 3) == (0.0, 0.5)
    assert pruning.head_sparsity_range(kept, 2, axis=0) == (0.0, 4 / 12)
    assert pruning.sparsity_by_matrix({"a": kept}) == {"a": 4 / 24}
    with pytest.raises(InputError, match="4 heads"):
        pruning.head_sparsity_range(kept, 4)
    with pytest.raises(InputError, match="are compared"):
        pruning.mask_difference(kept, kept[:1])
    weights = np.arange(-12, 12.0).reshape(4, 6)
    found = pruning.weight_heatmap(weights, 2, 3)
    wanted = [
        [abs(weights[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]).mean() for j in range(3)]
        for i in range(2)
    ]
    np.testing.assert_allclose(found, wanted)
    assert pruning.heat_figure(found, "title").axes


def test_features_of_two_models():
    space = RNG.normal(size=(200, 8)) * np.arange(8, 0, -1)
    turned = space @ np.linalg.qr(RNG.normal(size=(8, 8)))[0]
    found = pruning.feature_cosine_by_layer([space, space], [3 * space, turned])
    from sklearn.metrics.pairwise import paired_cosine_distances

    assert found[0] == pytest.approx(1)
    wanted = 1 - paired_cosine_distances(space, turned).mean()
    assert found[1] == pytest.approx(wanted)
    assert pruning.subspace_overlap(space, 2 * space + 1, 3) == pytest.approx(1)
    assert pruning.subspace_overlap(space, turned, 8) == pytest.approx(1)
    from sklearn.decomposition import PCA

    bases = [PCA(3).fit(x).components_ for x in (space, turned)]
    wanted = np.linalg.svd(bases[0] @ bases[1].T)[1]
    overlap = pruning.subspace_overlap(space, turned, 3)
    assert overlap == pytest.approx(np.mean(wanted**2))
    ratios = PCA().fit(space).explained_variance_ratio_
    shares = pruning.variance_in_components(space, [1, 4])
    np.testing.assert_allclose(shares, [ratios[0], ratios[:4].sum()])


def test_attention_of_two_models():
    real = np.array([[True, True, False]])
    even, first = np.full((1, 2, 3, 3), 1 / 3), np.zeros((1, 2, 3, 3))
    first[..., 0] = 1
    found = pruning.attention_distance_by_layer([even, even], [even, first], real)
    np.testing.assert_allclose(found, [0, 2 / 3])
    entropy = pruning.attention_entropy_by_layer([even, first], real)
    np.testing.assert_allclose(entropy, [stats.entropy([1, 1, 1]), 0], atol=1e-12)


def test_the_line_is_scipys():
    loss, score = RNG.normal(size=(2, 9))
    line = stats.linregress(loss, score)
    found = pruning.accuracy_vs_pretrain_loss(loss.tolist(), score.tolist())
    np.testing.assert_allclose(found, (line.slope, line.rvalue))


def test_the_lines_that_the_card_refits_from_the_table():
    """Loss of pretraining against accuracy after deletion, as the paper prints them."""
    loss = [1.82, 1.82, 1.83, 1.86, 1.93, 2.03, 2.25, 2.62, 3.44, 5.83]
    mnli = [83.0, 82.8, 82.9, 82.3, 82.2, 82.5, 81.9, 80.8, 78.6, 72.9]
    found = pruning.accuracy_vs_pretrain_loss(loss, mnli)
    assert found.slope == pytest.approx(-2.48, abs=0.005)
    assert found.correlation < -0.986
