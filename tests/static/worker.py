"""Trains small vectors of every kind; one of the processes of a test.

usage: python -m tests.static.worker CORPUS COUNTS OUTPUT
"""

import pathlib
import sys

import jax

from jaxemb import static, train
from jaxemb.data import cooccurrence, corpus, files

TRAINING = static.Training(
    dim=8,
    epochs=2,
    learning_rate=0.1,
    layout=static.Layout(chunk=140, groups=8, group=8),
)
OBJECTIVES = {
    "skipgram": static.SkipGram(window=2, shared=4),
    "subwords": static.SubwordSkipGram(window=2, shared=4, minn=2, maxn=3, buckets=50),
}
GLOVE = static.GloVe(dim=4, epochs=2, block=8, chunk=80, cap=3.0, held_out=5)
# How the tables are kept, which changes nothing.
SHARDED = {"skipgram": True, "subwords": False, "glove": True}


def train_all(text, counts, output, **options):
    """The tables of every kind, trained in `output/<kind>`."""
    options = {"progress": False, **options}
    tables = {
        name: static.train(
            text,
            objective,
            TRAINING,
            output / name,
            shard_rows=SHARDED[name],
            **options,
        )
        for name, objective in OBJECTIVES.items()
    }
    tables["glove"] = static.train_glove(
        text, counts, GLOVE, output / "glove", shard_rows=SHARDED["glove"], **options
    )
    return tables


def main(text, counts, output):
    train.initialize()
    jax.config.update("jax_compilation_cache_dir", str(files.cache_dir() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    train_all(
        corpus.open_corpus(text),
        cooccurrence.open_cooccurrences(counts),
        pathlib.Path(output),
    )
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
