import jax
import jax.numpy as jnp
import optax
import pytest

from jaxemb import optim
from jaxemb.errors import InputError

PARAMS = {
    "embed": {"delta": jnp.ones((3, 2))},
    "output": {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)},
}


def test_a_mask_is_true_where_a_pattern_matches_the_whole_path():
    mask = optim.by_path("embed/.*", lambda path: path.endswith("bias"))(PARAMS)
    assert mask == {"embed": {"delta": True}, "output": {"kernel": False, "bias": True}}


@pytest.mark.parametrize("pattern", ["delta", "embed", "output/kern"])
def test_a_pattern_that_matches_nothing_is_an_error(pattern):
    with pytest.raises(InputError, match=f"{pattern}.*embed/delta.*output/kernel"):
        optim.by_path("output/.*", pattern)(PARAMS)


def test_the_first_label_wins():
    label = optim.label_by_path({"table": "embed/.*", "rest": ".*"})
    assert label(PARAMS)["embed"]["delta"] == "table"
    assert label(PARAMS)["output"] == {"kernel": "rest", "bias": "rest"}


def test_a_parameter_without_a_label_is_an_error_unless_there_is_a_default():
    labels = {"table": "embed/.*"}
    with pytest.raises(InputError, match="output/bias matches none"):
        optim.label_by_path(labels)(PARAMS)
    named = optim.label_by_path(labels, default="rest")(PARAMS)
    assert named["output"]["bias"] == "rest"
    with pytest.raises(InputError, match="'nothing'"):
        optim.label_by_path({"a": "nothing"}, default="rest")(PARAMS)


def test_optax_takes_masks_and_labels():
    transform = optax.chain(
        optax.multi_transform(
            {"slow": optax.sgd(0.1), "off": optax.set_to_zero()},
            optim.label_by_path({"off": "output/.*"}, default="slow"),
        ),
        optax.masked(optax.scale(2.0), optim.by_path("embed/delta")),
    )
    gradients = jax.tree.map(jnp.ones_like, PARAMS)
    updates, _ = transform.update(gradients, transform.init(PARAMS), PARAMS)
    assert jnp.allclose(updates["embed"]["delta"], -0.2)
    assert (updates["output"]["kernel"] == 0).all()
