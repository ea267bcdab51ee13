"""Text encoders that experiments name: data sets, a user's folder, planted ones."""

from collections.abc import Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from experiments.common.datasets import described
from jaxemb import nn, pretrained
from jaxemb.data import sources
from jaxemb.pretrained.features import digest_of_weights
from jaxemb.train import results

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def load(place: str) -> tuple[pretrained.Pretrained, results.Data]:
    """An encoder, and what results call it.

    Args:
      place: a data set, or a folder of weights as the transformers library has them, of
        which the digest is of the numbers read.
    """
    if place in sources.DATA_SETS:
        found = sources.get(place)
        return pretrained.load_hf(str(found.part("config").parent)), described(found)
    model = pretrained.load_hf(place)
    used = results.Data(
        name=Path(place).name,
        kind="real",
        source="a folder of weights, of which the digest is of the numbers read",
        sha256=digest_of_weights(model),
        size=0,
    )
    return model, used


def planted(
    texts: Iterable[str],
    *,
    dim: int = 16,
    heads: int = 2,
    positions: int = 32,
    scale: float = 0.02,
) -> pretrained.Pretrained:
    """A small encoder of one layer and random weights over whole words.

    Args:
      texts: words, with blanks between, that it is to know.
      dim: of its states.
      heads: of its attention.
      positions: the longest text.
      scale: standard deviation of its weights; of a small encoder the usual 0.02 leaves
        the first state nearly the same whatever the text is.
    """
    words = sorted({word for text in texts for word in text.split()} - set(MARKS))
    vocab = {piece: i for i, piece in enumerate([*MARKS, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocab, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, vocab[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    shape = nn.TextConfig(
        vocab=len(vocab),
        dim=dim,
        layers=1,
        heads=heads,
        inner=2 * dim,
        positions=positions,
        initializer_range=scale,
    )
    ids = jnp.ones((1, 3), jnp.int32)
    params = nn.Bert(shape).init(jax.random.key(0), ids, ids > 0, deterministic=True)
    params = jax.tree.map(np.asarray, params["params"])
    return pretrained.Pretrained(shape, "bert", params, tokenizer.to_str().encode())
