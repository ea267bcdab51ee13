import sys
import tracemalloc
import zipfile

import gensim.models
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from gensim.models.fasttext import load_facebook_vectors
from gensim.test.utils import datapath

from jaxemb.data import sources
from jaxemb.data.formats import dispatch
from jaxemb.data.vectors import (
    UnknownWordError,
    WordVectors,
    read_word_vectors,
    write_word_vectors,
)
from jaxemb.errors import InputError

FASTTEXT = [
    ("crime-and-punishment.bin", "utf-8"),
    ("lee_fasttext.bin", "utf-8"),
    ("lee_fasttext_new.bin", "utf-8"),
    ("non_ascii_fasttext.bin", "utf-8"),
    ("cp852_fasttext.bin", "cp852"),
    ("toy-model.bin", "utf-8"),
    ("toy-model-pretrained.bin", "utf-8"),
]
WORD2VEC = [
    ("euclidean_vectors.bin", True),
    ("high_precision.kv.bin", True),
    ("poincare_vectors.bin", True),
    ("lee_fasttext.vec", False),
    ("crime-and-punishment.vec", False),
    ("toy-model.vec", False),
]
PLAIN = ["v.txt", "v.vec", "v.bin", "v.npz", "v.safetensors"]


def small(words="the cat sat", dim=3, seed=0):
    words = tuple(words.split())
    rng = np.random.default_rng(seed)
    return WordVectors(words, rng.normal(size=(len(words), dim)).astype(np.float32))


def assert_same(ours, theirs):
    assert ours.words == theirs.words
    np.testing.assert_array_equal(
        ours.matrix.view(np.uint32), theirs.matrix.view(np.uint32)
    )
    assert (ours.subwords is None) == (theirs.subwords is None)
    if ours.subwords is not None:
        for name in ("buckets", "words", "minn", "maxn"):
            one, two = getattr(ours.subwords, name), getattr(theirs.subwords, name)
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("name", "encoding"), FASTTEXT)
def test_fasttext_models_are_gensims(name, encoding):
    keyed = load_facebook_vectors(datapath(name), encoding=encoding)
    table = read_word_vectors(datapath(name), encoding=encoding)
    assert list(table.words) == keyed.index_to_key
    np.testing.assert_array_equal(table.matrix, keyed.vectors)
    unknown = ["zzz", "überğ", "x", "", "日本語テスト", "a b", "<>"]
    expected = np.stack([keyed.get_vector(word) for word in unknown])
    actual = table.lookup(unknown, oov="subword")
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("name", "binary"), WORD2VEC)
def test_word2vec_files_are_gensims(name, binary):
    keyed = gensim.models.KeyedVectors.load_word2vec_format(
        datapath(name), binary=binary
    )
    for format in (None, "word2vec-binary" if binary else "word2vec"):
        table = read_word_vectors(datapath(name), format=format)
        assert list(table.words) == keyed.index_to_key
        np.testing.assert_array_equal(table.matrix, keyed.vectors)


# gensim forgets to close a file without a header
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_glove_file_is_gensims():
    path = datapath("test_glove.txt")
    keyed = gensim.models.KeyedVectors.load_word2vec_format(path, no_header=True)
    table = read_word_vectors(path)
    assert list(table.words) == keyed.index_to_key
    np.testing.assert_array_equal(table.matrix, keyed.vectors)


def test_a_supervised_model_has_the_vectors_that_fasttext_printed():
    name = "pang_lee_polarity_fasttext"
    table = read_word_vectors(datapath(f"{name}.bin"), encoding="latin-1")
    printed = read_word_vectors(datapath(f"{name}.vec"), encoding="latin-1")
    assert table.words == printed.words
    np.testing.assert_allclose(table.matrix, printed.matrix, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz", "zip", "zip.gz"])
@pytest.mark.parametrize(
    ("name", "subwords"),
    [(n, False) for n in PLAIN] + [(n, True) for n in PLAIN[2:]],
)
def test_what_is_written_reads_back(tmp_path, name, packing, subwords):
    table = small("the ' \" NA nan null 12 ünï 日本 a,b #x")
    if subwords:
        table = read_word_vectors(datapath("toy-model.bin"))
    name += packing.removeprefix("zip")
    path = tmp_path / "a.zip" / "in" / name if "zip" in packing else tmp_path / name
    write_word_vectors(path, table)
    assert_same(read_word_vectors(path), table)
    assert [p.name for p in tmp_path.iterdir()] == [
        "a.zip" if "zip" in packing else name
    ]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("format", ["word2vec", "glove", "word2vec-binary"])
def test_gensim_reads_what_is_written(tmp_path, format):
    table = small("the ' \" NA nan null 12 ünï 日本 a,b #x", dim=5)
    write_word_vectors(tmp_path / "v", table, format=format)
    keyed = gensim.models.KeyedVectors.load_word2vec_format(
        str(tmp_path / "v"),
        binary=format == "word2vec-binary",
        no_header=format == "glove",
    )
    assert_same(WordVectors.from_gensim(keyed), table)


@pytest.mark.parametrize("subwords", [False, True])
def test_gensim_loads_the_fasttext_model_written(tmp_path, subwords):
    table = small("x y zed")
    if subwords:
        table = read_word_vectors(datapath("crime-and-punishment.bin"))
    path = tmp_path / "v.bin"
    write_word_vectors(path, table, format="fasttext")
    keyed = load_facebook_vectors(str(path))
    assert keyed.index_to_key == list(table.words)
    np.testing.assert_array_equal(keyed.vectors, table.matrix)
    full = gensim.models.fasttext.load_facebook_model(str(path))
    np.testing.assert_array_equal(full.wv.vectors, table.matrix)
    if subwords:
        np.testing.assert_array_equal(
            keyed["unheard"], table.lookup(["unheard"], oov="subword")[0]
        )
    assert_same(read_word_vectors(path), table)


def test_a_zip_keeps_its_other_members(tmp_path):
    path = tmp_path / "a.zip"
    for seed, name in enumerate(["one.txt", "two.npz", "one.txt"]):
        write_word_vectors(path / name, small(seed=seed))
    assert sorted(zipfile.ZipFile(path).namelist()) == ["one.txt", "two.npz"]
    assert_same(read_word_vectors(path / "two.npz"), small(seed=1))
    assert_same(read_word_vectors(path / "one.txt"), small(seed=2))
    with pytest.raises(InputError, match="holds 2 files"):
        read_word_vectors(path)
    write_word_vectors(tmp_path / "v.vec.zip", small())
    assert_same(read_word_vectors(tmp_path / "v.vec.zip"), small())


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "v.txt"
    write_word_vectors(path, small())
    bad = WordVectors(("ok", "a\nb"), np.zeros((2, 3), np.float32))
    with pytest.raises(InputError, match="cannot be told"):
        write_word_vectors(path, bad)
    assert_same(read_word_vectors(path), small())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("subwords", [False, True])
def test_mapped_tables_equal_read_ones_and_stay_on_disk(tmp_path, suffix, subwords):
    table = small(dim=4)
    if subwords:
        table = read_word_vectors(datapath("toy-model.bin"))
    path = tmp_path / f"v{suffix}"
    write_word_vectors(path, table)
    mapped = read_word_vectors(path, mmap=True)
    assert isinstance(mapped.matrix, np.memmap)
    assert mapped.matrix.flags.aligned
    assert_same(mapped, table)
    assert mapped.most_similar(table.words[0]) == table.most_similar(table.words[0])
    assert_same(
        read_word_vectors(path, mmap=True, limit=2).subset(table.words[:1]),
        table.subset(table.words[:1]),
    )


def test_mapping_does_not_read_the_rows(tmp_path):
    table = WordVectors(("a", "b"), np.ones((2, 1 << 20), np.float32))
    write_word_vectors(tmp_path / "v.safetensors", table)
    tracemalloc.start()
    read_word_vectors(tmp_path / "v.safetensors", mmap=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < table.matrix.nbytes / 4


def test_mapped_buckets_of_a_fasttext_model():
    path = datapath("crime-and-punishment.bin")
    mapped = read_word_vectors(path, mmap=True)
    assert isinstance(mapped.subwords.buckets, np.memmap)
    assert_same(mapped, read_word_vectors(path))


@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.npz.gz", "a.zip/v.npz"])
def test_what_cannot_be_mapped_says_so(tmp_path, name):
    write_word_vectors(tmp_path / name, small())
    with pytest.raises(InputError, match="cannot be memory-mapped"):
        read_word_vectors(tmp_path / name, mmap=True)


def test_compressed_npz_reads_but_cannot_be_mapped(tmp_path):
    path = tmp_path / "v.npz"
    np.savez_compressed(path, words=np.array(["a", "bé"]), matrix=np.eye(2))
    assert read_word_vectors(path).words == ("a", "bé")
    with pytest.raises(InputError, match="compressed"):
        read_word_vectors(path, mmap=True)


@pytest.mark.parametrize("name", [*PLAIN, "v.txt.bz2"])
def test_keep_and_limit(tmp_path, name):
    table = small("a b c d e f")
    path = tmp_path / name
    write_word_vectors(path, table)
    kept = read_word_vectors(path, keep={"e", "b", "absent"})
    assert_same(kept, table.subset(["b", "e"]))
    assert_same(read_word_vectors(path, limit=2), table.subset(["a", "b"]))
    assert_same(read_word_vectors(path, limit=3, keep={"c", "d"}), table.subset(["c"]))
    assert len(read_word_vectors(path, limit=0)) == 0
    assert len(read_word_vectors(path, keep=())) == 0


def test_keep_and_limit_of_a_fasttext_model():
    path = datapath("toy-model.bin")
    table = read_word_vectors(path)
    some = table.words[5:9]
    assert_same(read_word_vectors(path, keep=some), table.subset(some))
    assert_same(read_word_vectors(path, limit=3), table.subset(table.words[:3]))


@pytest.fixture(scope="module")
def lee():
    return read_word_vectors(datapath("lee_fasttext.vec"))


@pytest.mark.parametrize("seed", range(10))
def test_most_similar_is_gensims(lee, seed):
    keyed = lee.to_gensim()
    rng = np.random.default_rng(seed)
    picked = [lee.words[i] for i in rng.choice(len(lee), 5, replace=False)]
    queries = [
        ((picked[0],), ()),
        (picked[:2], picked[2:3]),
        ([picked[0], (picked[1], 2.5)], [rng.normal(size=10).astype(np.float32)]),
    ]
    for positive, negative in queries:
        for topn, restrict in [(1, None), (10, None), (7, 100), (3000, None)]:
            ours = lee.most_similar(positive, negative, topn=topn, restrict=restrict)
            theirs = keyed.most_similar(
                list(positive), list(negative), topn=topn, restrict_vocab=restrict
            )
            scores = [score for _, score in theirs]
            np.testing.assert_allclose([s for _, s in ours], scores, atol=2e-6)
            gaps = np.abs(np.diff(scores)) < 1e-6  # rounding may swap near equals
            clear = ~(np.append(gaps, False) | np.append(False, gaps))
            pairs = zip(ours, theirs, clear, strict=True)
            assert all(a[0] == b[0] for a, b, certain in pairs if certain)


def test_most_similar_of_one_word_or_of_an_unknown_one(lee):
    assert lee.most_similar("the") == lee.most_similar(["the"])
    assert lee.most_similar(lee["the"], topn=1)[0][0] == "the"
    with pytest.raises(InputError, match="'zzz' is not among"):
        lee.most_similar("zzz")
    with pytest.raises(InputError, match="at least one"):
        lee.most_similar()
    table = read_word_vectors(datapath("lee_fasttext.bin"))
    keyed = load_facebook_vectors(datapath("lee_fasttext.bin"))
    theirs = [word for word, _ in keyed.most_similar("governmental", topn=5)]
    assert [w for w, _ in table.most_similar("governmental", topn=5)] == theirs


def test_what_most_similar_is_asked_with(lee):
    keyed = lee.to_gensim()

    def nearest(*args, **options):
        return [word for word, _ in lee.most_similar(*args, **options)]

    vector = lee.matrix[7] + lee.matrix[9]
    assert lee.most_similar(("the", 2.0)) == lee.most_similar([("the", 2.0)])
    assert nearest(("the", 2.0)) == [w for w, _ in keyed.most_similar([("the", 2.0)])]
    expected = [word for word, _ in keyed.most_similar([vector])]
    for same in (
        vector,
        vector.tolist(),
        tuple(vector.tolist()),
        [vector],
        vector[None],
    ):
        assert nearest(same) == expected
    assert nearest((vector, 3.0)) == expected
    both = nearest(("the", "of"))  # a tuple of words is two words
    assert both == nearest(["the", "of"]) == nearest(np.array(["the", "of"]))
    # gensim takes a weight as it stands, in `negative` too, and so do we.
    for weight in (0.5, -0.5):
        theirs = keyed.most_similar(["the"], [("of", weight)])
        assert nearest("the", [("of", weight)]) == [word for word, _ in theirs]
    assert nearest("the", [("of", -1.0)]) == nearest("the", "of")


@pytest.mark.parametrize(
    "wrong",
    [
        [0.1] * 9,
        np.zeros(11, np.float32),
        [np.zeros(9, np.float32)],
        [float("nan")] * 10,
        ["the", 2.0],
        [("the", "of")],
        [["the", "of"]],
        [None],
    ],
)
def test_what_most_similar_cannot_be_asked_with(lee, wrong):
    problem = "expected words, vectors of 10 numbers or"
    for query in [(wrong,), ("the", wrong)]:
        with pytest.raises(InputError, match=problem):
            lee.most_similar(*query)


@pytest.mark.parametrize("name", ["topn", "restrict"])
@pytest.mark.parametrize("value", [0, -1])
def test_most_similar_of_no_rows(lee, name, value):
    with pytest.raises(InputError, match=f"{name}={value}: expected 1 or more"):
        lee.most_similar("the", **{name: value})


def test_a_string_is_not_several_words(tmp_path):
    table = small()
    write_word_vectors(tmp_path / "v.txt", table)
    for attempt in (
        lambda: table.lookup("cat", oov="zero"),
        lambda: table.subset("cat"),
        lambda: read_word_vectors(tmp_path / "v.txt", keep="cat"),
    ):
        with pytest.raises(InputError, match="several words, found the string 'cat'"):
            attempt()


def test_similarity_is_gensims(lee):
    keyed = lee.to_gensim()
    for a, b in zip(lee.words[:20], lee.words[20:40], strict=True):
        assert lee.similarity(a, b) == pytest.approx(keyed.similarity(a, b), abs=1e-6)


def test_gensim_there_and_back(lee):
    assert_same(WordVectors.from_gensim(lee.to_gensim()), lee)
    table = read_word_vectors(datapath("toy-model.bin"))
    keyed = table.to_gensim()
    assert_same(WordVectors.from_gensim(keyed), table)
    unknown = table.lookup(["unheard"], oov="subword")[0]
    np.testing.assert_array_equal(keyed["unheard"], unknown)


def test_lookup_by_every_policy():
    table = small()
    rows = table.lookup(["cat", "the", "cat"])
    np.testing.assert_array_equal(rows, table.matrix[[1, 0, 1]])
    assert table.lookup([]).shape == (0, 3)
    with pytest.raises(UnknownWordError, match="'dog' is not among.*3 words"):
        table.lookup(["the", "dog"])
    np.testing.assert_array_equal(table.lookup(["dog"], oov="zero"), np.zeros((1, 3)))
    mean = table.lookup(["dog", "cat"], oov="mean")
    np.testing.assert_allclose(mean[0], table.matrix.mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(mean[1], table["cat"])
    with pytest.raises(InputError, match="no fastText subwords"):
        table.lookup(["dog"], oov="subword")
    with pytest.raises(InputError, match="oov='skip'.*expected one of error"):
        table.lookup(["dog"], oov="skip")


def test_a_random_row_depends_on_word_and_seed_alone():
    table = small(dim=2000)
    one = table.lookup(["dog", "the", "emu"], oov="random", seed=3)
    two = table.lookup(["emu", "dog"], oov="random", seed=3)
    np.testing.assert_array_equal(one[[2, 0]], two)
    other = table.lookup(["emu", "dog"], oov="random", seed=4)
    assert not np.isin(other, two).all(axis=1).any()
    assert np.abs(two).max() <= 0.25
    assert two.std() == pytest.approx(0.5 / 12**0.5, rel=0.05)
    assert not np.array_equal(two[0], two[1])


def test_subset_and_normalised():
    table = small()
    part = table.subset(["sat", "dog", "the", "sat"])
    assert part.words == ("sat", "the")
    np.testing.assert_array_equal(part.matrix, table.matrix[[2, 0]])
    matrix = np.array([[3, 4], [0, 0]], np.float32)
    unit = WordVectors(("a", "b"), matrix).normalised()
    np.testing.assert_allclose(unit.matrix, [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_a_table_behaves_like_a_collection():
    table = small()
    assert (len(table), table.dim, list(table)) == (3, 3, ["the", "cat", "sat"])
    assert "cat" in table and "dog" not in table
    assert table.index == {"the": 0, "cat": 1, "sat": 2}
    np.testing.assert_array_equal(table["cat"], table.matrix[1])
    with pytest.raises(KeyError):
        table["dog"]
    assert repr(table) == "WordVectors(3 words, 3 dimensions)"
    assert table != small() and len({table, small()}) == 2


@pytest.mark.parametrize(
    ("words", "matrix", "problem"),
    [
        (("a",), np.zeros((2, 3), np.float32), "for each of 1 words"),
        (("a",), np.zeros(3, np.float32), "for each of 1 words"),
        (("a",), np.zeros((1, 0), np.float32), "for each of 1 words"),
        (("a",), np.zeros((1, 3)), "expected float32"),
        (("a", "b", "a"), np.zeros((3, 3), np.float32), "'a' occurs twice"),
    ],
)
def test_an_impossible_table_is_refused(words, matrix, problem):
    with pytest.raises(InputError, match=problem):
        WordVectors(words, matrix)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"format": "glov"}, "format='glov'"),
        ({"on_bad": "raise"}, "on_bad='raise'"),
        ({"limit": -1}, "limit=-1"),
        ({"encoding": "utf-16"}, "extends ASCII"),
        ({"encoding": "klingon"}, "extends ASCII"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, options, problem):
    write_word_vectors(tmp_path / "v.txt", small())
    with pytest.raises(InputError, match=problem):
        read_word_vectors(tmp_path / "v.txt", **options)


def test_missing_files_and_unknown_suffixes(tmp_path):
    for name in ["v.txt", "v.bin", "v", "v.npz"]:
        with pytest.raises(InputError, match="no such file"):
            read_word_vectors(tmp_path / name)
    with pytest.raises(InputError, match="name a format"):
        write_word_vectors(tmp_path / "v.pkl", small())


def test_reading_keeps_no_second_list_of_words(tmp_path):
    rows = np.zeros((40_000, 50), np.float32)
    table = WordVectors(tuple(f"word{i}" for i in range(len(rows))), rows)
    write_word_vectors(tmp_path / "v.bin", table)
    tracemalloc.start()
    read = read_word_vectors(tmp_path / "v.bin")
    kept, peak = tracemalloc.get_traced_memory()
    needed = sum(map(sys.getsizeof, read.words)) + sys.getsizeof(read.words)
    one_dict = sys.getsizeof(dict.fromkeys(read.words))
    tracemalloc.stop()
    needed += rows.nbytes
    assert kept < needed + one_dict / 2
    assert peak < needed + 1.5 * one_dict + (2 << 20)  # the blocks at hand


words_without_blanks = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\v\f\r "),
    min_size=1,
    max_size=8,
)


words_of_parts = st.lists(
    words_without_blanks | st.sampled_from(["a", "66", "0.5", "\ufeff", "\ufeffa"]),
    min_size=1,
    max_size=3,
).map(" ".join)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    words=st.lists(words_without_blanks, unique=True, max_size=8)
    | st.lists(words_of_parts, unique=True, max_size=8),
    dim=st.integers(1, 5),
    data=st.data(),
)
def test_any_table_survives_any_format(tmp_path_factory, words, dim, data):
    values = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(values, min_size=dim, max_size=dim)
    rows = data.draw(st.lists(row, min_size=len(words), max_size=len(words)))
    matrix = np.array(rows, np.float32).reshape(len(words), dim)
    table = WordVectors(tuple(words), matrix)
    folder = tmp_path_factory.mktemp("tables")
    spaces = any(" " in word for word in words)
    for format in dispatch.FORMATS:
        path = folder / f"v.{format}"
        try:
            write_word_vectors(path, table, format=format)
        except InputError:  # what would read back as something else
            assert format == "glove" or (spaces and format.startswith("word2vec"))
            assert not path.exists()
            continue
        assert_same(read_word_vectors(path, format=format), table)
        if format == "glove":
            assert_same(read_word_vectors(path), table)


@pytest.mark.data
def test_real_glove_is_read_by_keep():
    found = sources.locate("glove-100d-subset")
    if found is None:
        pytest.skip("needs glove.6B.100d.subset.txt in the data folder")
    some = {"good", "bad", "not"}
    table = read_word_vectors(found.path, keep=some)
    assert set(table.words) == some
    assert table.similarity("good", "bad") > 0.5
