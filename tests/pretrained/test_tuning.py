"""Tuning begins with the weights that were read, and the example of it runs."""

import dataclasses
import inspect
import re
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import nn, pretrained
from jaxemb.errors import InputError


def example() -> str:
    """The pieces of Python in the package's docstring, end to end."""
    text = inspect.getdoc(pretrained) or ""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text + "\n", re.M)
    return "\n".join(textwrap.dedent(block) for block in blocks)


def test_the_example_of_the_docstring_runs(bert, tmp_path, monkeypatch):
    """It runs, tunes, and compiles one program of a step for the one length it has."""
    monkeypatch.chdir(tmp_path)
    shapes = []
    real = nn.SequenceClassifier.__call__

    def traced(self, ids, *args, **more):
        if more.get("deterministic") is False:
            shapes.append(ids.shape)
        return real(self, ids, *args, **more)

    monkeypatch.setattr(nn.SequenceClassifier, "__call__", traced)
    pretrained.save_hf("all-MiniLM-L6-v2", bert)
    names: dict = {}
    exec(compile(example(), "docstring", "exec"), names)
    assert names["vectors"].shape == (2, 8)
    assert len(shapes) == len(set(shapes)) == 1
    again = pretrained.load_hf("tuned")
    jax.tree.map(
        np.testing.assert_array_equal,
        again.params,
        jax.tree.map(np.asarray, names["state"].params["encoder"]),
    )
    first, second = (
        pretrained.encode_texts(one, names["texts"][:2]) for one in (bert, again)
    )
    assert np.abs(first - second).max() > 1e-5  # it was tuned


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        (lambda config: nn.SequenceClassifier(3, config), (1, 2)),
        (nn.MultipleChoice, (1, 2, 2)),
        (nn.MaskedLM, (1, 2)),
    ],
)
def test_a_head_begins_above_the_weights_that_were_read(bert, head, shape):
    module, key = head(bert.config), jax.random.key(3)
    found = pretrained.variables_above(bert, module, key, shape)
    ids = jnp.ones(shape, jnp.int32)
    wanted = module.init(key, ids, ids > 0, deterministic=True)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    sides = [one["params"].get("text", one["params"]) for one in (found, wanted)]
    jax.tree.map(np.testing.assert_array_equal, sides[0].pop("encoder"), bert.params)
    del sides[1]["encoder"]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), *sides)


def test_another_encoder_is_named(bert):
    config = dataclasses.replace(bert.config, inner=20)
    key = jax.random.key(0)
    with pytest.raises(InputError, match="of another shape"):
        pretrained.variables_above(bert, nn.SequenceClassifier(2, config), key)
    with pytest.raises(InputError, match="it has none"):
        pretrained.variables_above(bert, nn.Bert(bert.config), key)
