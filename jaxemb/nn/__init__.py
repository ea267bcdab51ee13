"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn import crf
from jaxemb.nn.characters import CharBiLSTM, CharCNN
from jaxemb.nn.conv import ConvEncoder, KimCNN
from jaxemb.nn.crf import CRF
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.embed import DeltaEmbedding, effective_table, table_init
from jaxemb.nn.highway import Highway
from jaxemb.nn.recurrent import (
    GRU,
    LSTM,
    BiGRU,
    BiLSTM,
    GRUState,
    LSTMClassifier,
    LSTMState,
)
from jaxemb.nn.tagger import Tagger

__all__ = [
    "CRF",
    "GRU",
    "LSTM",
    "BiGRU",
    "BiLSTM",
    "CharBiLSTM",
    "CharCNN",
    "ConvEncoder",
    "DeltaEmbedding",
    "Dropout",
    "GRUState",
    "Highway",
    "KimCNN",
    "LSTMClassifier",
    "LSTMState",
    "Tagger",
    "crf",
    "effective_table",
    "table_init",
]
