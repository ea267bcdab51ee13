"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.bidaf import BiDAF, SpanLogits
from jaxemb.nn.conv import KimCNN
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.embed import DeltaEmbedding, effective_table, table_init
from jaxemb.nn.esim import ESIM
from jaxemb.nn.heads import BatchNormClassifier, feature_statistics
from jaxemb.nn.highway import Highway
from jaxemb.nn.recurrent import (
    LSTM,
    BiLSTM,
    BiLSTMPoolClassifier,
    LSTMClassifier,
    LSTMState,
)

__all__ = [
    "ESIM",
    "LSTM",
    "BiDAF",
    "BatchNormClassifier",
    "BiLSTM",
    "BiLSTMPoolClassifier",
    "DeltaEmbedding",
    "Dropout",
    "Highway",
    "KimCNN",
    "LSTMClassifier",
    "LSTMState",
    "SpanLogits",
    "Trilinear",
    "attend",
    "effective_table",
    "feature_statistics",
    "table_init",
]
