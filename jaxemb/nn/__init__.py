"""Flax (linen) modules; `mask` is True at real words, and sequences end in padding."""

from jaxemb.nn import crf
from jaxemb.nn.attention import Trilinear, attend
from jaxemb.nn.bert import GPT2, Bert, TextConfig
from jaxemb.nn.bidaf import BiDAF, SpanLogits
from jaxemb.nn.characters import CharBiLSTM, CharCNN
from jaxemb.nn.conv import ConvEncoder, KimCNN
from jaxemb.nn.crf import CRF
from jaxemb.nn.dropout import Dropout
from jaxemb.nn.embed import DeltaEmbedding, effective_table, table_init
from jaxemb.nn.esim import ESIM
from jaxemb.nn.heads import BatchNormClassifier, feature_statistics
from jaxemb.nn.highway import Highway
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
    TextClassifier,
)
from jaxemb.nn.transformer import (
    Encoded,
    Transformer,
    sinusoids,
    stack_layers,
    unstack_layers,
)

__all__ = [
    "CRF",
    "ESIM",
    "GPT2",
    "GRU",
    "LSTM",
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
    "Encoded",
    "GRUState",
    "Highway",
    "KimCNN",
    "LSTMClassifier",
    "LSTMState",
    "MaskedLM",
    "MultipleChoice",
    "PieceClassifier",
    "SpanLogits",
    "Tagger",
    "TextClassifier",
    "TextConfig",
    "Transformer",
    "Trilinear",
    "align_wordpieces",
    "attend",
    "crf",
    "effective_table",
    "feature_statistics",
    "mean_pooled",
    "sinusoids",
    "stack_layers",
    "table_init",
    "unstack_layers",
]
