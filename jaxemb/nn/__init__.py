"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn import crf
from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.bidaf import BiDAF, SpanLogits
from jaxemb.nn.characters import CharBiLSTM, CharCNN
from jaxemb.nn.conv import ConvEncoder, KimCNN
from jaxemb.nn.crf import CRF
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.embed import DeltaEmbedding, effective_table, table_init
from jaxemb.nn.esim import ESIM
from jaxemb.nn.heads import BatchNormClassifier, feature_statistics
from jaxemb.nn.highway import Highway
from jaxemb.nn.recurrent import (
    GRU,
    LSTM,
    BiGRU,
    BiLSTM,
    BiLSTMPoolClassifier,
    GRUState,
    LSTMClassifier,
    LSTMState,
)
from jaxemb.nn.tagger import Tagger

__all__ = [
    "CRF",
    "ESIM",
    "GRU",
    "LSTM",
    "BatchNormClassifier",
    "BiDAF",
    "BiGRU",
    "BiLSTM",
    "BiLSTMPoolClassifier",
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
    "SpanLogits",
    "Tagger",
    "Trilinear",
    "attend",
    "crf",
    "effective_table",
    "feature_statistics",
    "table_init",
]
