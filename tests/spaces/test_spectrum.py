"""Normalisation, Gram matrices and similarity order, against plain numpy."""

import numpy as np
import pytest

from jaxemb.errors import InputError
from jaxemb.spaces import normalize, spectrum

GRID = (-0.5, -0.25, -0.15, 0.0, 0.15, 0.25, 0.5)


@pytest.fixture
def space():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 7)) * np.exp(-np.arange(7) / 3)[np.newaxis]


def test_steps_do_what_they_say(space):
    np.testing.assert_allclose(np.linalg.norm(normalize.unit(space), axis=1), 1)
    np.testing.assert_allclose(normalize.center(space).mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(normalize.unitdim(space), axis=0), 1)
    np.testing.assert_allclose(normalize.centeremb(space).mean(axis=1), 0, atol=1e-15)
    standard = normalize.standardize(space)
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(standard.std(axis=0), 1)


def test_steps_follow_their_order(space):
    steps = ["unit", "center", "unit"]
    expected = space / np.linalg.norm(space, axis=1)[:, np.newaxis]
    expected = expected - expected.mean(axis=0)[np.newaxis]
    expected = expected / np.linalg.norm(expected, axis=1)[:, np.newaxis]
    np.testing.assert_allclose(normalize.normalize(space, steps), expected)
    assert normalize.normalize(space, []).dtype == np.float64


def test_zeros_stay_zeros_and_the_argument_is_left_alone(space):
    space[3] = 0
    space[:, 2] = 0
    before = space.copy()
    for step in (normalize.unit, normalize.unitdim, normalize.standardize):
        out = step(space)
        assert np.all(np.isfinite(out))
        np.testing.assert_array_equal(out[:, 2], 0)
    np.testing.assert_array_equal(normalize.unit(space)[3], 0)
    np.testing.assert_array_equal(space, before)


def test_gram_sums_blocks_in_float64(monkeypatch):
    monkeypatch.setattr(spectrum, "_BLOCK", 16)
    rng = np.random.default_rng(1)
    first, second = (rng.normal(size=(50, d)).astype(np.float32) for d in (4, 6))
    expected = first.astype(np.float64).T @ second.astype(np.float64)
    np.testing.assert_allclose(spectrum.gram(first, second), expected, rtol=1e-13)
    with pytest.raises(InputError, match="50 and 49 words"):
        spectrum.gram(first, second[:-1])


def test_powers_by_multiplication(space):
    square = spectrum.gram(space)
    root = spectrum.power(square, 0.5)
    np.testing.assert_allclose(root @ root, square, atol=1e-12)
    inverse = spectrum.power(square, -1.0)
    np.testing.assert_allclose(inverse @ square, np.eye(7), atol=1e-10)


@pytest.mark.parametrize("alpha", GRID)
def test_singular_values_are_raised(space, alpha):
    values = np.linalg.svd(space, compute_uv=False)
    changed = np.linalg.svd(spectrum.similarity_order(space, alpha), compute_uv=False)
    expected = np.sort(values ** (1 + 2 * alpha))[::-1]
    np.testing.assert_allclose(changed, expected, rtol=1e-9)


def test_half_is_second_order_zero_a_rotation_minus_half_white(space):
    first = space @ space.T
    half = spectrum.similarity_order(space, 0.5)
    np.testing.assert_allclose(half @ half.T, first @ first, atol=1e-9)
    none = spectrum.similarity_order(space, 0.0)
    np.testing.assert_allclose(none @ none.T, first, atol=1e-10)
    white = spectrum.similarity_order(space, -0.5)
    np.testing.assert_allclose(white.T @ white, np.eye(7), atol=1e-10)


@pytest.mark.parametrize(("a", "b"), [(0.25, -0.15), (-0.25, 0.5), (0.15, 0.15)])
def test_orders_compose(space, a, b):
    twice = spectrum.similarity_order(spectrum.similarity_order(space, a), b)
    once = spectrum.similarity_order(space, ((1 + 2 * a) * (1 + 2 * b) - 1) / 2)
    np.testing.assert_allclose(twice @ twice.T, once @ once.T, atol=1e-9)


def test_a_space_of_lower_rank_is_whitened_without_infinities(space):
    flat = np.concatenate([space, space[:, :2]], axis=1)
    assert np.all(np.isfinite(spectrum.similarity_order(flat, -0.5)))


def test_bad_spaces_are_named(space):
    with pytest.raises(InputError, match="a space of zeros"):
        spectrum.similarity_order(np.zeros((3, 2)), 0.5)
    space[0, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        spectrum.similarity_order(space, 0.5)
    with pytest.raises(InputError, match="normalisation 'mean': expected one of unit"):
        normalize.normalize(space, ["mean"])
