"""Tiny pretrained encoders of random weights, with a tokenizer of a few pieces."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from jaxemb import nn
from jaxemb.pretrained import Pretrained

# What the layout of GPT-2 says of an encoder.
GPT2 = {
    "segments": 0,
    "embedding_norm": False,
    "pre_norm": True,
    "causal": True,
    "pooler": False,
    "epsilon": 1e-5,
    "activation": "gelu_tanh",
}


def tiny(vocab: Sequence[str], kind: str = "bert", **shape: Any) -> Pretrained:
    """An encoder of these pieces; `[CLS]` and `[SEP]` stand around texts if there."""
    pieces = {piece: i for i, piece in enumerate(vocab)}
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if "[CLS]" in pieces:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(mark, pieces[mark]) for mark in ("[CLS]", "[SEP]")],
        )
    layout = GPT2 if kind == "gpt2" else {}
    config = nn.TextConfig(vocab=len(vocab), heads=2, **layout, **shape)
    module = (nn.GPT2 if kind == "gpt2" else nn.Bert)(config)
    ids = jnp.ones((1, 3), jnp.int32)
    shapes = jax.eval_shape(
        lambda: module.init(jax.random.key(0), ids, ids > 0, deterministic=True)
    )["params"]
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda s: rng.normal(size=s.shape).astype(np.float32), shapes)
    return Pretrained(config, kind, params, tokenizer.to_str().encode())
