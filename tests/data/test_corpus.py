import collections
import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gensim.models.word2vec as gensim_word2vec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import corpus, sources
from jaxemb.data.corpus import building, readers
from jaxemb.data.corpus import files as corpus_files
from jaxemb.errors import InputError

ROOT = Path(__file__).parents[2]
WORDS = st.sampled_from(["a", "b", "c", "dé", "e-f", "G"])
TEXTS = st.lists(st.lists(WORDS, max_size=9), min_size=1, max_size=30)


def build(text, folder, **settings):
    return corpus.build(text, folder, progress=False, **settings)


def cut(text, limit):
    """Sentences without blank ones, cut."""
    for sentence in text:
        for start in range(0, len(sentence), limit):
            yield sentence[start : start + limit]


def expected(text, *, min_count, max_words=None, max_sentence=10_000, held_out=0):
    """The same by plain Python: words, counts, sentences and raw boundaries."""
    sentences = list(cut(text, max_sentence))
    apart = sentences[held_out - 1 :: held_out] if held_out else []
    if held_out:
        del sentences[held_out - 1 :: held_out]
    counts = collections.Counter(word for s in sentences for word in s)
    words = sorted(w for w in counts if counts[w] >= min_count)
    words = sorted(words, key=lambda w: -counts[w])[:max_words]

    def part(sentences):
        known = [[w for w in s if w in words] for s in sentences]
        before = np.cumsum([0, *map(len, sentences)])
        raw = [int(n) for n, s in zip(before, known, strict=False) if s]
        return [s for s in known if s], [0, *raw[1:], int(before[-1])]

    return words, [counts[w] for w in words], part(sentences), part(apart)


def check_part(built, sentences, raw):
    assert [built.sentence(i) for i in range(len(built))] == sentences
    assert built.starts.tolist() == [0, *np.cumsum([len(s) for s in sentences])]
    assert built.raw.tolist() == raw
    counts = collections.Counter(word for s in sentences for word in s)
    assert built.counts.tolist() == [counts[word] for word in built.words]


@given(TEXTS, st.integers(1, 3), st.integers(1, 7), st.sampled_from([0, 2, 3]))
def test_equals_plain_python(tmp_path_factory, text, min_count, max_sentence, held_out):
    folder = tmp_path_factory.mktemp("corpus") / "built"
    settings = dict(min_count=min_count, max_sentence=max_sentence, held_out=held_out)
    words, counts, main, apart = expected(text, **settings)
    if not words or (held_out and not apart[0]):
        with pytest.raises(InputError):
            build(text, folder, **settings)
        assert list(folder.parent.iterdir()) == []
        return
    built = build(text, folder, **settings)
    assert built.words == tuple(words) and built.counts.tolist() == counts
    check_part(built, *main)
    if held_out:
        check_part(built.held_out, *apart)
        assert built.held_out.words is built.words
    else:
        assert built.held_out is None


@given(TEXTS, st.data())
def test_the_order_of_reading_does_not_change_the_vocabulary(
    tmp_path_factory, text, data
):
    if not any(text):
        return
    folder = tmp_path_factory.mktemp("corpus")
    other = data.draw(st.permutations(text))
    one = build(text, folder / "one", min_count=1, max_words=3)
    two = build(other, folder / "two", min_count=1, max_words=3)
    assert one.words == two.words and one.counts.tolist() == two.counts.tolist()


def test_arrays_are_mapped_and_typed(tmp_path):
    built = build([["a", "b"], ["b"]], tmp_path / "c", min_count=1)
    types = [built.counts, built.tokens, built.starts, built.raw]
    assert [array.dtype.name for array in types] == ["int64", "int32", "int64", "int64"]
    assert all(isinstance(array, np.memmap) for array in types)
    assert built.folder == tmp_path / "c" and built.index == {"b": 0, "a": 1}
    assert sorted(os.listdir(tmp_path / "c")) == [
        *("corpus.json", "counts.npy", "raw.npy", "starts.npy", "tokens.npy"),
        "words.txt",
    ]
    info = json.loads((tmp_path / "c" / "corpus.json").read_text())
    assert info["min_count"] == 1 and info["held_out"] == 0


def test_a_digest_tells_texts_apart(tmp_path):
    text = [["a", "b"], ["b", "a"], ["a"], ["b"]]
    numbers = iter(range(99))

    def digest(text, **settings):
        folder = tmp_path / f"{next(numbers)}"
        return build(text, folder, min_count=1, **settings).sha256

    whole, apart = digest(text), digest(text, held_out=2)
    assert whole == digest(iter(text)) and apart == digest(text, held_out=2)
    assert corpus.open_corpus(tmp_path / "0").sha256 == whole
    others = {
        "order of words": digest([["b", "a"], ["b", "a"], ["a"], ["b"]]),
        "sentences": digest([["a", "b", "b"], ["a"], ["a"], ["b"]]),
        "words": digest([["a", "c"], ["c", "a"], ["a"], ["c"]]),
        "a part kept apart": apart,
        "another part": digest([["a", "b"], ["a", "b"], ["a"], ["b"]], held_out=2),
    }
    assert len({whole, *others.values()}) == 1 + len(others)


def test_a_corpus_of_an_earlier_version_has_the_same_digest(tmp_path):
    built = build([["a", "b"], ["b"]], tmp_path / "c", min_count=1, held_out=2)
    path = tmp_path / "c" / "corpus.json"
    info = json.loads(path.read_text())
    assert info.pop("sha256") == built.sha256
    path.write_text(json.dumps(info))
    assert corpus.open_corpus(tmp_path / "c").sha256 == built.sha256


def test_small_chunks_make_the_same_corpus(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    text = [[f"w{i}" for i in generator.zipf(1.5, 9) % 50] for _ in range(200)]
    whole = build(text, tmp_path / "whole", min_count=2, held_out=7)
    monkeypatch.setattr(building, "_CHUNK", 20)
    pieces = build(iter(text), tmp_path / "pieces", min_count=2, held_out=7)
    assert whole.sha256 == pieces.sha256
    for one, two in ((whole, pieces), (whole.held_out, pieces.held_out)):
        assert one.words == two.words
        for name in ("counts", "tokens", "starts", "raw"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist(), name


@pytest.mark.parametrize(
    "make",
    [
        lambda words: words,
        iter,
        lambda words: (word for word in words),
        lambda words: np.array(words),
    ],
)
def test_single_words_are_cut_into_sentences(tmp_path, make):
    words = "a b a c a b a".split()
    built = build(make(words), tmp_path / "c", min_count=1, max_sentence=3)
    sentences = [built.sentence(i) for i in range(len(built))]
    assert sentences == [["a", "b", "a"], ["c", "a", "b"], ["a"]]
    assert type(built.words[0]) is str


def test_a_generator_is_read_once_and_its_scratch_files_go(tmp_path):
    def text():
        yield ["a", "b"]
        yield ("b", "c")

    built = build(text(), tmp_path / "c", min_count=1)
    assert built.words == ("b", "a", "c")
    assert os.listdir(tmp_path) == ["c"]
    assert {p.suffix for p in (tmp_path / "c").iterdir()} == {".npy", ".txt", ".json"}


@pytest.mark.parametrize("name", ["t.txt", "t.txt.gz"])
def test_a_file(tmp_path, name):
    opener = gzip.open if name.endswith("gz") else open
    with opener(tmp_path / name, "wt", encoding="utf-8") as stream:
        stream.write("\ufeffa b  a\n\n \nc\tä\r\nb")
    built = build(str(tmp_path / name), tmp_path / "c", min_count=1)
    sentences = [built.sentence(i) for i in range(len(built))]
    assert sentences == [["a", "b", "a"], ["c", "ä"], ["b"]]
    same = build(tmp_path / name, tmp_path / "d", min_count=1)
    assert same.tokens.tolist() == built.tokens.tolist()


def test_odd_words_come_back(tmp_path):
    words = ["\ufeff", "a\r", "x y", "\u2028", "😀", "\x85"]
    built = build([words], tmp_path / "c", min_count=1)
    assert sorted(built.words) == sorted(words)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ([], "the text: expected words, found none"),
        ([[], []], "the text: expected words, found none"),
        (iter([]), "expected words, found none"),
        ([["a", "b"]], r"no word occurs 2 times .min_count.; .* occurs 1 times"),
        (["the cat sat"], "sentences that are split into words, found 'the cat sat'"),
        ([["a"], "the cat"], "split into words, found 'the cat' of type str"),
        ([b"the cat"], "split into words, found .* of type bytes"),
        ([["a", 1]], "a word of type int: '1'"),
        ([[b"a"]], "a word of type bytes"),
        ([[["a"]]], "a word of type list"),
        (["a", 1, "b"], "a word of type int"),
        ([["a", ""]], "holds an empty word"),
        ([["a\nb", "a\nb"]], "holds a line break"),
        ([["\ud800", "\ud800"]], "not valid Unicode"),
        ([1, 2], "split into words, found '1' of type int"),
        (3, "expected a path or sentences of words, found an object of type int"),
        ("no/such/file", "no/such/file: no such file"),
    ],
)
def test_what_bad_text_gets(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem) as caught:
        # The hook would name the type first; what users see has none.
        corpus.build.__wrapped__(text, tmp_path / "c", min_count=2, progress=False)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"min_count": 0}, "min_count is 0; expected 1 or more"),
        ({"max_words": 0}, "max_words is 0"),
        ({"max_sentence": 0}, "max_sentence is 0"),
        ({"prune_at": 1}, "prune_at is 1; expected 2 or more"),
        ({"held_out": 1}, "held_out is 1; expected 0, or N of 2 or more"),
        ({"held_out": -2}, "held_out is -2"),
        ({"held_out": 5}, "every 5-th sentence apart, but of 2 none"),
    ],
)
def test_what_bad_settings_get(tmp_path, settings, problem):
    with pytest.raises(InputError, match=problem):
        build([["a"], ["a"]], tmp_path / "c", **{"min_count": 1, **settings})
    assert os.listdir(tmp_path) == []


def test_a_folder_is_never_written_over(tmp_path):
    build([["a"]], tmp_path / "c", min_count=1)
    with pytest.raises(InputError, match="c: is there already; open it, or remove it"):
        build([["b"]], tmp_path / "c", min_count=1)
    assert corpus.open_corpus(tmp_path / "c").words == ("a",)
    (tmp_path / "empty").mkdir()
    assert build([["b"]], tmp_path / "empty", min_count=1).words == ("b",)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: is there already"):
        build([["b"]], tmp_path / "file", min_count=1)


def test_a_killed_build_leaves_nothing_that_looks_whole(tmp_path):
    code = (
        "import itertools, sys; from jaxemb.data import corpus\n"
        "def text():\n"
        "    for n in itertools.count():\n"
        "        if n == 300_000: print('far', flush=True)\n"
        "        yield ['a', 'b']\n"
        "corpus.build(text(), sys.argv[1])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "c")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"far\n"
    assert [p.suffix for p in tmp_path.iterdir()] == [".part"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with pytest.raises(InputError, match="c: no corpus here"):
        corpus.open_corpus(tmp_path / "c")
    build([["a"]], tmp_path / "c", min_count=1)
    assert os.listdir(tmp_path) == ["c"]  # the next one cleans up


def test_the_scratch_folder_of_a_living_build_stays(tmp_path):
    with pytest.raises(InputError, match="c: is there already"):
        with corpus_files.new_folder(tmp_path / "c") as part:
            build([["a"]], tmp_path / "c", min_count=1)  # another one, and faster
            assert part.is_dir()
    assert corpus.open_corpus(tmp_path / "c").words == ("a",)
    assert os.listdir(tmp_path) == ["c"]


def test_damaged_files(tmp_path):
    folder = tmp_path / "c"
    build([["a", "b"], ["a"]], folder, min_count=1)
    tokens = (folder / "tokens.npy").read_bytes()
    (folder / "tokens.npy").write_bytes(tokens[:-4])
    with pytest.raises(InputError, match=r"tokens\.npy: damaged array"):
        corpus.open_corpus(folder)
    np.save(folder / "tokens.npy", np.zeros(2, np.int32))
    with pytest.raises(InputError, match="tokens, starts and raw do not belong"):
        corpus.open_corpus(folder)
    (folder / "tokens.npy").unlink()
    with pytest.raises(InputError, match=r"tokens\.npy: no such file"):
        corpus.open_corpus(folder)
    (folder / "words.txt").write_text("a\n")
    np.save(folder / "tokens.npy", np.zeros(3, np.int32))
    with pytest.raises(InputError, match="expected 1 counts, one a word, found 2"):
        corpus.open_corpus(folder)


@given(TEXTS, st.integers(2, 4))
def test_pruning_keeps_counts_and_tokens_together(tmp_path_factory, text, prune_at):
    """Whatever is forgotten: counts are of tokens, and never above the true ones."""
    if not any(text):
        return
    folder = tmp_path_factory.mktemp("corpus") / "built"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_CHUNK", 5)
        try:
            built = build(text, folder, min_count=1, prune_at=prune_at)
        except InputError:
            return
    true = collections.Counter(word for s in text for word in s)
    counted = np.bincount(built.tokens, minlength=len(built.words))
    assert built.counts.tolist() == counted.tolist()
    assert all(c <= true[w] for w, c in zip(built.words, built.counts, strict=True))
    assert built.raw[-1] == sum(true.values())


def test_pruning_forgets_rare_words_only(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "_CHUNK", 1000)
    rare = (f"rare{i}" for i in itertools.count())
    text = [["the", "of", "the", next(rare), next(rare)] for _ in range(4000)]
    built = build(text, tmp_path / "c", min_count=100, prune_at=1000)
    assert built.words == ("the", "of") and built.counts.tolist() == [8000, 4000]
    unpruned = build(text, tmp_path / "d", min_count=100)
    for name in ("tokens", "starts", "raw"):
        assert np.array_equal(getattr(built, name), getattr(unpruned, name))


def test_memory_does_not_grow_with_the_text(tmp_path):
    """Ten times the text takes no more than a little more memory."""
    code = (
        "import sys, resource; from jaxemb.data import corpus\n"
        "words = [f'w{i}' for i in range(1000)]\n"
        "text = (words for _ in range(int(sys.argv[2])))\n"
        "corpus.build(text, sys.argv[1], progress=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for thousands in (500, 5000):
        command = [sys.executable, "-c", code, str(tmp_path / f"{thousands}")]
        done = subprocess.run(
            [*command, str(thousands)],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        peaks.append(int(done.stdout))
    # 4.5 M words more: 18 MB of ids alone, if they were held.
    assert peaks[1] - peaks[0] < 8_000, peaks


def test_progress_is_told_elsewhere_than_in_output(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(corpus_files, "_QUIET_SECONDS", 0)
    corpus.build([["a"]], tmp_path / "c", min_count=1)
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.split(" ·")[0] for line in told.err.splitlines()] == [
        "reading: 1 words",
        "encoding: 1 words",
    ]
    corpus.build([["a"]], tmp_path / "d", min_count=1, progress=False)
    assert capsys.readouterr().err == ""


def gensim_vocabulary(text, min_count):
    model = gensim_word2vec.Word2Vec(vector_size=1, min_count=min_count, workers=1)
    model.build_vocab(text)
    vectors = model.wv
    return {word: vectors.get_vecattr(word, "count") for word in vectors.index_to_key}


def test_vocabulary_of_gensim(tmp_path):
    text = [["b", "a", "a", "c"], ["c", "b", "d"]]
    built = build(text, tmp_path / "c", min_count=2)
    theirs = gensim_vocabulary(text, 2)
    assert dict(zip(built.words, built.counts.tolist(), strict=True)) == theirs
    assert built.words == ("a", "b", "c")  # gensim: latest first, c a b
    assert list(theirs) == ["c", "a", "b"]


@pytest.mark.data
def test_vocabulary_of_gensim_on_brown(tmp_path):
    found = sources.locate("brown")
    if found is None:
        pytest.skip(sources.missing("brown"))
    assert found.kind == "real" and len(found.parts) == 500
    text = readers.read_brown(found, lower=True)
    started = time.monotonic()
    built = build(text, tmp_path / "c", min_count=5)
    assert time.monotonic() - started < 60
    theirs = gensim_vocabulary(text, 5)
    assert dict(zip(built.words, built.counts.tolist(), strict=True)) == theirs
    assert built.raw[-1] == 1_161_192 and sum(1 for _ in text) == 57_340
    assert (np.diff(built.counts) <= 0).all()
    # A line of words reads as gensim's LineSentence reads it, cut as it cuts.
    path = tmp_path / "brown.txt"
    path.write_text("".join(" ".join(s) + "\n" for s in itertools.islice(text, 5000)))
    line = gensim_word2vec.LineSentence(str(path), max_sentence_length=20)
    assert list(readers.read_sentences(path, max_sentence=20)) == list(line)
