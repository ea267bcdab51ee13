"""What comes in: where data are, and readers that give plain Python and numpy.

TFDS builders are in `jaxemb.data.builders`, which has to be imported by name.
"""

from jaxemb.data import stopwords, tokenize
from jaxemb.data.analogies import Analogy, read_analogies
from jaxemb.data.commonsense import (
    Candidate,
    Choice,
    read_commonsenseqa,
    read_comve,
    read_cosmosqa,
    read_mcscript,
    read_mctaco,
)
from jaxemb.data.compounds import Compound, read_farahmand, read_reddy
from jaxemb.data.features import WordFeatures, read_features
from jaxemb.data.glue import GLUE_TASKS, GlueExample, read_glue
from jaxemb.data.lexicons import english_function_words
from jaxemb.data.nli import SentencePair, SentencePairs, read_nli
from jaxemb.data.pairs import WordPair, read_pairs
from jaxemb.data.paraphrases import Paraphrase, read_mrpc
from jaxemb.data.probing import ProbingTask, top_constituents, tree_depth
from jaxemb.data.recipes import RecipePhrase, Recipes, read_recipes
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
from jaxemb.data.squad import Question, read_squad
from jaxemb.data.synthetic import PlantedSentiment, planted_sentiment
from jaxemb.data.text import (
    LabelledText,
    read_imdb,
    read_kim,
    read_movie_reviews,
    read_newsgroups,
    read_rt_polarity,
    read_sst,
    read_tsv,
)
from jaxemb.data.treebank import read_treebank
from jaxemb.data.trees import Tree, phrases, read_trees
from jaxemb.data.vectors import WordVectors, read_word_vectors, write_word_vectors
from jaxemb.data.vocab import PAD, PAD_ID, UNK, UNK_ID, Vocab, read_counts

__all__ = [
    "DATA_SETS",
    "GLUE_TASKS",
    "PAD",
    "PAD_ID",
    "UNK",
    "UNK_ID",
    "Analogy",
    "Candidate",
    "Choice",
    "Compound",
    "DataSet",
    "FetchError",
    "Found",
    "GlueExample",
    "LabelledText",
    "Offline",
    "Paraphrase",
    "PlantedSentiment",
    "ProbingTask",
    "Question",
    "RecipePhrase",
    "Recipes",
    "Relation",
    "SentencePair",
    "SentencePairs",
    "Tree",
    "Vocab",
    "WordFeatures",
    "WordPair",
    "WordVectors",
    "english_function_words",
    "get",
    "locate",
    "missing",
    "phrases",
    "planted_sentiment",
    "read_analogies",
    "read_commonsenseqa",
    "read_comve",
    "read_cosmosqa",
    "read_counts",
    "read_farahmand",
    "read_features",
    "read_glue",
    "read_imdb",
    "read_kim",
    "read_mcscript",
    "read_mctaco",
    "read_movie_reviews",
    "read_mrpc",
    "read_newsgroups",
    "read_nli",
    "read_pairs",
    "read_recipes",
    "read_reddy",
    "read_rt_polarity",
    "read_semeval2012",
    "read_squad",
    "read_sst",
    "read_treebank",
    "read_trees",
    "read_tsv",
    "read_word_vectors",
    "stopwords",
    "tokenize",
    "top_constituents",
    "tree_depth",
    "write_word_vectors",
]
