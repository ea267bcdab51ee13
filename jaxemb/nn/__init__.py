"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn import crf, meta
from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.bidaf import BiDAF, SpanLogits
from jaxemb.nn.characters import CharBiLSTM, CharCNN
from jaxemb.nn.classifier import TextClassifier
from jaxemb.nn.conv import ConvEncoder, KimCNN
from jaxemb.nn.crf import CRF
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.embed import DeltaEmbedding, effective_table, table_init
from jaxemb.nn.esim import ESIM
from jaxemb.nn.heads import BatchNormClassifier, feature_statistics
from jaxemb.nn.highway import Highway, HighwayEncoder
from jaxemb.nn.meta import (
    AAEME,
    AEME,
    CAEME,
    DAEME,
    MTE,
    TAE,
    AuxReconstruction,
    DynamicMetaEmbedding,
    OneToN,
    SiameseHead,
)
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
    "AAEME",
    "AEME",
    "CAEME",
    "CRF",
    "DAEME",
    "ESIM",
    "GRU",
    "LSTM",
    "MTE",
    "TAE",
    "AuxReconstruction",
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
    "DynamicMetaEmbedding",
    "GRUState",
    "Highway",
    "HighwayEncoder",
    "KimCNN",
    "LSTMClassifier",
    "LSTMState",
    "OneToN",
    "SiameseHead",
    "SpanLogits",
    "Tagger",
    "TextClassifier",
    "Trilinear",
    "attend",
    "crf",
    "effective_table",
    "feature_statistics",
    "meta",
    "table_init",
]
