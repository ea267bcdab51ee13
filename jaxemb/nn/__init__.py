"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn import crf, meta
from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.bert import GPT2, Bert, TextConfig
from jaxemb.nn.bidaf import BiDAF, SpanLogits
from jaxemb.nn.characters import CharBiLSTM, CharCNN
from jaxemb.nn.classifier import TextClassifier
from jaxemb.nn.conv import ConvEncoder, KimCNN
from jaxemb.nn.crf import CRF
from jaxemb.nn.documents import HAN, XMLCNN, AttentionPool, RegLSTM, TfidfLinear
from jaxemb.nn.dropout import Dropout, TypeDropout, drop_weights
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
from jaxemb.nn.pieces import align_wordpieces, mean_pooled
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
from jaxemb.nn.text_heads import (
    CausalLM,
    MaskedLM,
    MultipleChoice,
    PieceClassifier,
    SequenceClassifier,
)
from jaxemb.nn.transformer import (
    Encoded,
    Transformer,
    sinusoids,
    stack_layers,
    unstack_layers,
)

__all__ = [
    "AAEME",
    "AEME",
    "CAEME",
    "CRF",
    "DAEME",
    "ESIM",
    "GPT2",
    "GRU",
    "HAN",
    "LSTM",
    "MTE",
    "TAE",
    "XMLCNN",
    "AttentionPool",
    "AuxReconstruction",
    "BatchNormClassifier",
    "Bert",
    "BiDAF",
    "BiGRU",
    "BiLSTM",
    "BiLSTMPoolClassifier",
    "CausalLM",
    "CharBiLSTM",
    "CharCNN",
    "ConvEncoder",
    "DeltaEmbedding",
    "Dropout",
    "DynamicMetaEmbedding",
    "Encoded",
    "GRUState",
    "Highway",
    "HighwayEncoder",
    "KimCNN",
    "LSTMClassifier",
    "LSTMState",
    "MaskedLM",
    "MultipleChoice",
    "OneToN",
    "PieceClassifier",
    "RegLSTM",
    "SequenceClassifier",
    "SiameseHead",
    "SpanLogits",
    "Tagger",
    "TextClassifier",
    "TextConfig",
    "TfidfLinear",
    "Transformer",
    "TypeDropout",
    "Trilinear",
    "align_wordpieces",
    "attend",
    "crf",
    "drop_weights",
    "effective_table",
    "feature_statistics",
    "mean_pooled",
    "meta",
    "sinusoids",
    "stack_layers",
    "table_init",
    "unstack_layers",
]
