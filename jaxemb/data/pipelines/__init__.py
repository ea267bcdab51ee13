"""Counting and encoding of text by Apache Beam, for corpora beyond one machine.

Three pipelines, each of which reads what the one before wrote:

* `text.count`: text files → words with their counts;
* `text.encode`: the same files and those words → ArrayRecord shards of word ids;
* `pairs.cooccurrences`: those shards → shards of weighted pairs.

`corpus_from_shards` and `cooccurrences_from_shards` of `data.corpus.shards` then give
the same `Corpus` and `Cooccurrences`, number by number, as `corpus.build` and
`cooccurrence.count` do on one machine.

They need the extra `beam`, which wants older protobuf and pyarrow than the rest and is
best given an environment of its own. The command line is `python -m
jaxemb.data.pipelines`. Every path is Beam's, so `gs://…` works where its extras are.
"""
