"""Trainers of word vectors: skip-gram, CBOW, subword skip-gram and GloVe."""

from jaxemb.static.blocks import Blocks, Layout
from jaxemb.static.glove import GloVe, train_glove
from jaxemb.static.objectives import CBOW, SkipGram, SubwordSkipGram
from jaxemb.static.running import RunOptions
from jaxemb.static.tables import WordTables
from jaxemb.static.trainer import Training, make_step, train

__all__ = [
    "CBOW",
    "Blocks",
    "GloVe",
    "Layout",
    "RunOptions",
    "SkipGram",
    "SubwordSkipGram",
    "Training",
    "WordTables",
    "make_step",
    "train",
    "train_glove",
]
