"""The library's own models under every kind of perturbation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import losses, nn, perturb

RNG = np.random.default_rng(0)
BATCH, LENGTH, DIM = 3, 4, 6
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]], bool)
KEY = jax.random.key(3)
TAGS = np.where(MASK, RNG.integers(0, 3, MASK.shape), 0)
SHAPE = nn.TextConfig(
    vocab=20, dim=DIM, layers=1, heads=2, inner=8, positions=LENGTH, dropout_rate=0.0,
    attention_dropout_rate=0.0,
)  # fmt: skip


def words(module):
    """A model over given vectors: its variables, vectors, and the two functions."""
    x, mask = jnp.asarray(RNG.normal(size=(BATCH, LENGTH, DIM)), jnp.float32), MASK
    variables = module.init(KEY, x, jnp.asarray(mask), deterministic=True)

    def logits(variables, x):
        return module.apply(variables, x, jnp.asarray(mask), deterministic=True)

    return variables, lambda _: x, logits, mask


def texts(module, shape=(BATCH, LENGTH)):
    """A model over ids."""
    ids = jnp.asarray(RNG.integers(1, 20, shape), jnp.int32)
    mask = jnp.asarray(
        np.broadcast_to(MASK if len(shape) == 2 else MASK[:, None], shape)
    )
    variables = module.init(KEY, ids, mask, deterministic=True)
    whole = module.apply(variables, ids, mask, deterministic=True)
    halves = module.apply(
        variables,
        module.apply(variables, ids, method="embed"),
        mask,
        deterministic=True,
        method="logits",
    )
    np.testing.assert_array_equal(whole, halves)

    def embed(variables):
        return module.apply(variables, ids, method="embed")

    def logits(variables, x):
        return module.apply(variables, x, mask, deterministic=True, method="logits")

    return variables, embed, logits, np.asarray(mask)


def of_texts(variables, logits):
    return losses.softmax_cross_entropy(logits, jnp.arange(BATCH) % logits.shape[-1])


def of_words(variables, logits):
    tags, mask = jnp.asarray(TAGS), jnp.asarray(MASK)
    return losses.softmax_cross_entropy(logits, tags, mask=mask)


CHAIN = nn.Tagger(3, hidden=4, head="crf")


def of_chain(variables, emissions):
    return CHAIN.apply(
        variables,
        emissions,
        method=lambda tagger, e: tagger.crf(e, jnp.asarray(TAGS), jnp.asarray(MASK)),
    )


CASES = {
    "LSTM classifier": (lambda: words(nn.TextClassifier(3, hidden=4)), of_texts),
    "CNN classifier": (
        lambda: words(nn.TextClassifier(3, hidden=4, encoder="cnn")),
        of_texts,
    ),
    "tagger": (lambda: words(nn.Tagger(3, hidden=4, head="softmax")), of_words),
    "CRF tagger": (lambda: words(CHAIN), of_chain),
    "Bert, texts": (lambda: texts(nn.SequenceClassifier(3, SHAPE)), of_texts),
    "Bert, pieces": (lambda: texts(nn.PieceClassifier(3, SHAPE)), of_words),
    "Bert, choices": (
        lambda: texts(nn.MultipleChoice(SHAPE), (BATCH, 2, LENGTH)),
        of_texts,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_model_is_perturbed(name):
    make, loss_of = CASES[name]
    variables, embed, logits, mask = make()

    def loss(variables, objective, junk=0.0):
        x = jnp.where(jnp.asarray(mask)[..., None], embed(variables), junk)
        return perturb.perturbed_loss(
            objective,
            lambda x, _: logits(variables, x),
            lambda found: loss_of(variables, found),
            x,
            jnp.asarray(mask),
            KEY,
        )

    # A twentieth of the size of embeddings, which differs a lot between models.
    size = 0.05 * float(jnp.sqrt(jnp.mean(jnp.square(embed(variables)))))
    ascent = perturb.Ascent(epsilon=size, eta=size, sigma=size / 10)
    objective = perturb.alice(ascent, clean=1e-6)

    @jax.jit
    def both(variables, junk):
        run = jax.value_and_grad(lambda v: loss(v, objective, junk), has_aux=True)
        plain = jnp.mean(loss_of(variables, logits(variables, embed(variables))))
        return run(variables), plain

    ((value, terms), gradient), plain = both(variables, 0.0)
    assert float(terms["clean"]) == pytest.approx(float(plain), rel=1e-5)
    assert float(terms["labelled"]) > float(plain)  # the change hurts
    assert float(terms["virtual"]) > 0
    leaves = jax.tree.leaves(gradient)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert sum(np.abs(leaf).sum() for leaf in leaves) > 0
    again = both(variables, 1e3)[0][0][0]
    assert float(again) == float(value)  # padding is not read
