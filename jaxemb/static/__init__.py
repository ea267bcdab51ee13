"""Trainers of word vectors: of pairs in a text, of counts, of an encoder's vectors."""

from jaxemb.static.blocks import Blocks, Layout
from jaxemb.static.contextual import (
    ContextTables,
    ContextToStatic,
    TokenVectors,
    train_contextual,
)
from jaxemb.static.glove import GloVe, train_glove
from jaxemb.static.objectives import CBOW, SkipGram, SubwordSkipGram
from jaxemb.static.running import RunOptions
from jaxemb.static.tables import WordTables
from jaxemb.static.trainer import Training, make_step, train

__all__ = [
    "CBOW",
    "Blocks",
    "ContextTables",
    "ContextToStatic",
    "GloVe",
    "Layout",
    "RunOptions",
    "SkipGram",
    "SubwordSkipGram",
    "TokenVectors",
    "Training",
    "WordTables",
    "make_step",
    "train",
    "train_contextual",
    "train_glove",
]
