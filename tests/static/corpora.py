"""Small corpora, shared by the tests of trainers."""

import jax.numpy as jnp
import numpy as np

from jaxemb.data import corpus
from jaxemb.static.objectives import Block


def random_sentences(vocab=30, sentences=120, seed=0):
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, vocab + 1)
    weights /= weights.sum()
    lengths = rng.integers(1, 12, sentences)
    return [[f"w{i}" for i in rng.choice(vocab, n, p=weights)] for n in lengths]


def random_block(rng, vocab, shape, window, shared=4, **more):
    """Words in groups of this shape, neighbours and noise; `more` are other fields."""
    groups, group = shape
    return Block(
        words=jnp.array(rng.integers(0, vocab, (groups, group + 2 * window))),
        before=jnp.array(rng.integers(0, window + 1, shape)),
        after=jnp.array(rng.integers(0, window + 1, shape)),
        noise=jnp.array(rng.integers(0, vocab, (groups, shared))),
        window=window,
        **more,
    )


def build(folder, sentences=None, **options):
    sentences = random_sentences() if sentences is None else sentences
    settings = {"min_count": 1, "progress": False, **options}
    return corpus.build(sentences, folder, **settings)


def pairs_by_enumeration(text, window):
    """(centre, context) of every two words at most `window` apart in a sentence."""
    out = []
    for number in range(len(text)):
        words = text.tokens[text.starts[number] : text.starts[number + 1]]
        for i, centre in enumerate(words):
            for j in range(max(0, i - window), min(len(words), i + window + 1)):
                if i != j:
                    out.append((int(centre), int(words[j])))
    return sorted(out)
