"""Fixtures that the tests of this experiment share."""

import pytest

from tests.multitask_meta_embedding.shared import SETTINGS, planted, three_ways


@pytest.fixture(scope="module")
def world():
    """Sources that share meanings and, louder, what people do not care about."""
    return planted(3, 0.3)


@pytest.fixture(scope="module")
def found(world):
    """Supervised, by shuffled labels, and by nothing: the plain autoencoder."""
    return three_ways(world, "Brier", 0.1, SETTINGS)
