"""What comes in: where data are, and readers that give plain Python and numpy.

TFDS builders are in `jaxemb.data.builders`, which has to be imported by name.
"""

from jaxemb.data import tags, tokenize
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.conll import read_conll
from jaxemb.data.conllu import read_conllu
from jaxemb.data.features import WordFeatures, read_features
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.data.semeval2012 import Relation, read_semeval2012
from jaxemb.data.sources import (
    DATA_SETS,
    DataSet,
    FetchError,
    Found,
    Offline,
    get,
    locate,
    missing,
)
from jaxemb.data.synthetic import PlantedSentiment, planted_sentiment
from jaxemb.data.text import (
    LabelledText,
    read_kim,
    read_movie_reviews,
    read_rt_polarity,
    read_sst,
    read_tsv,
)
from jaxemb.data.trees import Tree, phrases, read_trees
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.data.vocab import PAD, PAD_ID, UNK, UNK_ID, Vocab

__all__ = [
    "DATA_SETS",
    "PAD",
    "PAD_ID",
    "UNK",
    "UNK_ID",
    "Analogy",
    "DataSet",
    "FetchError",
    "Found",
    "LabelledText",
    "Offline",
    "PlantedSentiment",
    "Relation",
    "Tree",
    "Vocab",
    "WordFeatures",
    "WordPair",
    "WordVectors",
    "get",
    "locate",
    "missing",
    "phrases",
    "planted_sentiment",
    "read_analogies",
    "read_conll",
    "read_conllu",
    "read_features",
    "read_kim",
    "read_movie_reviews",
    "read_pairs",
    "read_rt_polarity",
    "read_semeval2012",
    "read_sst",
    "read_trees",
    "read_tsv",
    "read_word_vectors",
    "tags",
    "tokenize",
    "write_word_vectors",
]
