import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxemb import nn
from jaxemb.pretrained import chosen_places, mlm_mask

VOCAB, MASK_ID = 50, 4
IDS = np.random.default_rng(0).integers(5, VOCAB, (400, 60))
IDS[:, 0] = 2
MASK = np.arange(60) < np.random.default_rng(1).integers(5, 61, 400)[:, None]


def hidden(seed=0):
    found = mlm_mask(
        jax.random.key(seed),
        *(jnp.asarray(IDS), jnp.asarray(MASK)),
        vocab=VOCAB,
        mask_id=MASK_ID,
        special_ids=(2, 3),
    )
    return np.asarray(found.ids), np.asarray(found.chosen)


def test_shares_are_those_of_bert():
    ids, chosen = hidden()
    free = MASK & (IDS != 2)
    assert not chosen[~free].any()
    np.testing.assert_array_equal(ids[~chosen], IDS[~chosen])
    assert stats.binomtest(int(chosen.sum()), int(free.sum()), 0.15).pvalue > 1e-3
    of = ids[chosen]
    # A piece drawn at random is the right one, or [MASK], once in VOCAB times.
    shown = [0.8 + 0.1 / VOCAB, 0.1 + 0.1 / VOCAB]
    counts = [int((of == MASK_ID).sum()), int((of == IDS[chosen]).sum())]
    for count, share in zip(counts, shown, strict=True):
        assert stats.binomtest(count, len(of), share).pvalue > 1e-3
    others = of[(of != MASK_ID) & (of != IDS[chosen])]
    drawn = np.bincount(others, minlength=VOCAB)
    assert len(drawn) == VOCAB
    assert stats.chisquare(np.delete(drawn, MASK_ID)).pvalue > 1e-3


def test_the_key_decides():
    first, again, other = hidden(0), hidden(0), hidden(1)
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[1] != other[1]).any()


def test_chosen_places_and_their_logits_are_those_of_the_whole(bert):
    chosen = np.array([[0, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 0]], bool)
    places, real = chosen_places(jnp.asarray(chosen), 3)
    np.testing.assert_array_equal(places[0], [1, 3, 4])
    np.testing.assert_array_equal(real, [[1, 1, 1], [1, 0, 0]])
    assert places[1, 0] == 4
    model = nn.MaskedLM(bert.config)
    ids = jnp.arange(12, dtype=jnp.int32).reshape(2, 6)
    mask = jnp.ones((2, 6), bool)
    variables = model.init(jax.random.key(0), ids, mask, deterministic=True)
    whole = model.apply(variables, ids, mask, deterministic=True)
    some = model.apply(variables, ids, mask, None, places, deterministic=True)
    wanted = [[whole[b, t] for t in np.asarray(places[b])] for b in range(2)]
    np.testing.assert_allclose(some, np.array(wanted), atol=1e-5)
