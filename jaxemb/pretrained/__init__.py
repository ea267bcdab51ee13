"""Pretrained text encoders: weights and tokenizers of others, without their libraries.

from jaxemb import pretrained

bert = pretrained.load_hf("all-MiniLM-L6-v2")
encoder = bert.module()
"""

from jaxemb.pretrained.features import FeatureCache, cache_features
from jaxemb.pretrained.huggingface import (
    Pretrained,
    load_hf,
    masked_lm_params,
    save_hf,
)
from jaxemb.pretrained.masking import Hidden, mlm_mask
from jaxemb.pretrained.tables import token_table, type_averages
from jaxemb.pretrained.tokens import Cutter, Pieces, Window, padded, windows

__all__ = [
    "Cutter",
    "FeatureCache",
    "Hidden",
    "Pieces",
    "Pretrained",
    "Window",
    "cache_features",
    "load_hf",
    "masked_lm_params",
    "mlm_mask",
    "padded",
    "save_hf",
    "token_table",
    "type_averages",
    "windows",
]
