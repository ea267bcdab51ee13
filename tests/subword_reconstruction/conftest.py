"""Fixtures that the tests of this experiment share."""

import jax
import jax.numpy as jnp
import pytest

from experiments.subword_reconstruction import data, tagging
from jaxemb.data import vocab
from tests.subword_reconstruction.shared import SMOKE


@pytest.fixture(scope="module")
def world():
    return data.load(SMOKE)


@pytest.fixture(scope="module")
def taggers(world, tmp_path_factory):
    return tagging.Taggers(SMOKE, world, tmp_path_factory.mktemp("tagging"))


@pytest.fixture(scope="module")
def full(world, taggers):
    """FULL without dropout, numbers for it, and a batch with padding."""
    module = taggers._program(True, 0.0).module
    params = taggers.params(tagging.FULL, 3)
    batch = taggers._spelled[False].batch(taggers._plan(0)(0))
    assert (batch["ids"] == vocab.PAD_ID).any()
    return module, {"params": jax.tree.map(jnp.asarray, params)}, batch
