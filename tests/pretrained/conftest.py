"""A tiny encoder with a tokenizer, for all tests of the folder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from jaxemb import nn, pretrained

VOCAB = "[PAD] [UNK] [CLS] [SEP] A a dog runs hound is running fine dull film .".split()


@pytest.fixture(scope="session")
def bert() -> pretrained.Pretrained:
    """A BERT of 15 whole words that takes 12 pieces."""
    pieces = {piece: i for i, piece in enumerate(VOCAB)}
    tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    config = nn.TextConfig(
        vocab=len(VOCAB), dim=8, layers=2, heads=2, inner=16, positions=12
    )
    ids = jnp.ones((1, 3), jnp.int32)
    module = nn.Bert(config)
    params = module.init(jax.random.key(0), ids, ids > 0, deterministic=True)["params"]
    params = jax.tree.map(np.asarray, params)
    return pretrained.Pretrained(config, "bert", params, tokenizer.to_str().encode())
