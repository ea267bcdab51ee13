"""Meta-embeddings: one vector of a word from those of several sources.

All modules read the sources side by side, `sources` being `sum(widths)` wide, and a
mask `known` that tells which of them have the word. What a source lacks is read as 0
and not asked for.
"""

from jaxemb.nn.meta.attention import DynamicMetaEmbedding
from jaxemb.nn.meta.autoencoders import AAEME, AEME, CAEME, DAEME
from jaxemb.nn.meta.auxiliary import AuxReconstruction
from jaxemb.nn.meta.coded import Coded, coordinates, reconstruction_loss
from jaxemb.nn.meta.free import OneToN
from jaxemb.nn.meta.siamese import Compared, SiameseHead
from jaxemb.nn.meta.targets import MTE, TAE

__all__ = [
    "AAEME",
    "AEME",
    "CAEME",
    "DAEME",
    "MTE",
    "TAE",
    "AuxReconstruction",
    "Coded",
    "Compared",
    "DynamicMetaEmbedding",
    "OneToN",
    "SiameseHead",
    "coordinates",
    "reconstruction_loss",
]
