"""Text as one long array of word ids on disk: what trainers of word vectors read."""

from jaxemb.data.corpus.building import Corpus, build, open_corpus
from jaxemb.data.corpus.readers import Sentences, read_sentences

__all__ = ["Corpus", "Sentences", "build", "open_corpus", "read_sentences"]
