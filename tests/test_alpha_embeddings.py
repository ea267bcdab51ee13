"""The experiment on alpha-embeddings: a user's tables, chosen alphas, classifiers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from experiments.alpha_embeddings import (
    chosen,
    classifiers,
    data,
    extrinsic,
    intrinsic,
    main,
    model,
)
from experiments.alpha_embeddings.config import PRESETS, Classifier
from experiments.alpha_embeddings.model import Name
from experiments.common import cli
from jaxemb import static, train
from jaxemb.data import batching, synthetic, vectors
from jaxemb.data.analogies import Analogy
from jaxemb.data.pairs import WordPair
from jaxemb.errors import InputError
from jaxemb.spaces import alpha, normalize
from jaxemb.train import results

WORLD = synthetic.planted_forms(num_sentences=10)
WORDS = tuple(sorted({*WORLD.classes.words, "unknown"}))


def config_of(*arguments):
    return cli.parse("alpha_embeddings", PRESETS, list(arguments))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("words", "contexts"):
        matrix = rng.normal(size=(len(WORDS), 6)).astype(np.float32)
        order = WORDS if name == "words" else WORDS[::-1]
        table = vectors.WordVectors(order, matrix)
        vectors.write_word_vectors(tmp_path / f"{name}.vec", table)
    lines = [f"{word}\t{i + 1}\n" for i, word in enumerate(WORDS)]
    (tmp_path / "counts.tsv").write_text("".join(lines))
    names = "--words", "words.vec", "--contexts", "contexts.vec"
    names += "--counts", "counts.tsv"
    return [str(tmp_path / n) if "." in n else n for n in names]


@pytest.fixture
def planted(monkeypatch):
    """The planted tests in the place of real ones."""
    monkeypatch.setattr(data, "load_tests", data._planted_tests)


def test_a_users_own_tables(files, planted, tmp_path):
    arguments = (
        *("--alphas", "1", "-3", "--limits", "t1", "t3-w", "--resamples", "50"),
        *("--metrics", "I", "nF-pI", "--workdir", str(tmp_path / "run")),
        *("--published", files[3], "--no-progress"),
    )
    written = main.run(config_of("custom", *files, *arguments))
    assert written == results.read(tmp_path / "run")
    assert written["config"]["text and tables"]["vocabulary"] == len(WORDS)
    measured = {(r["name"], r["metric"]): r["measured"] for r in written["rows"]}
    one = measured["6d/E-U-0-I (α = 1)", "Google, accuracy (%)"]
    assert measured["6d/E-U-0-I (α = 1)", "Google, accuracy (%), sweep"] == one
    assert 0 <= measured["6d/WG5", "Google, accuracy (%)"] <= 100
    assert written["config"]["words that WG5 knows"] == {"6d": len(WORDS)}
    folder = tmp_path / "run" / "vectors" / "6d" / "seed-0"
    assert len(list(folder.iterdir())) == 2 * 3 * 2 * 4
    u, v = (vectors.read_word_vectors(files[i]).lookup(WORDS) for i in (1, 3))
    found = vectors.read_word_vectors(folder / "E-U+V-0-I (α = 1).txt")
    assert found.words == WORDS
    np.testing.assert_allclose(found.matrix, normalize.unit(u + v), atol=1e-6)
    found = vectors.read_word_vectors(folder / "LE-U-ud-nF-pI-t3-w.txt")
    counts = np.arange(1, len(WORDS) + 1)
    of = alpha.Model(u, v, alpha.unigram(counts))
    limit = alpha.normalised(alpha.limit_embedding(of, 3, weighted=True), of, "F")
    np.testing.assert_allclose(found.matrix, limit, rtol=1e-4, atol=1e-5)
    for name in ("fisher", "drift", "clusters"):
        assert (tmp_path / "run" / "figures" / f"6d-{name}.svg").exists()
    with pytest.raises(InputError, match="holds a run with alphas"):
        main.run(config_of("custom", *files, *arguments, "--alphas", "2"))


def test_tables_without_a_word_of_the_tests_are_refused(files, tmp_path, monkeypatch):
    foreign = {"foreign": tuple(WordPair("xx", "yy", float(n)) for n in range(3))}
    tests = dataclasses.replace(
        data._planted_tests(config_of("smoke")),
        similarity=foreign,
        analogies={},
        classes=None,
    )
    monkeypatch.setattr(data, "load_tests", lambda config: tests)
    with pytest.raises(InputError, match="words of the tables are in no test"):
        main.run(config_of("custom", *files, "--workdir", str(tmp_path / "run")))


def test_mistakes_are_named(files, tmp_path, capsys):
    custom = PRESETS["custom"][1]
    for change, problem in (
        ({"words": "a.vec"}, "--words and --contexts together"),
        ({"limits": ("x1",)}, "--limits x1: expected t1"),
        ({"alphas": (), "limits": ()}, "both empty"),
    ):
        with pytest.raises(InputError, match=problem):
            dataclasses.replace(custom, **change)
    with pytest.raises(SystemExit) as left:
        config_of("custom", *files[:2])
    assert left.value.code == 2
    assert "--words and --contexts together" in capsys.readouterr().err
    with pytest.raises(InputError, match="--references u ud: expected --counts"):
        data.load_source(config_of("custom", *files[:4]))
    plain = config_of("custom", *files[:4], "--references", "0")
    assert data.load_source(plain).names == ("6d",)
    short = vectors.WordVectors(WORDS[1:], np.ones((len(WORDS) - 1, 6), np.float32))
    vectors.write_word_vectors(tmp_path / "short.vec", short)
    with pytest.raises(InputError, match=f"lacks 1 words .* is {WORDS[0]!r}"):
        data.load_source(
            config_of("custom", *files, "--contexts", str(tmp_path / "short.vec"))
        )
    narrow = vectors.WordVectors(WORDS, np.ones((len(WORDS), 5), np.float32))
    vectors.write_word_vectors(tmp_path / "narrow.vec", narrow)
    with pytest.raises(InputError, match="5 dimensions, where --words has 6"):
        data.load_source(
            config_of("custom", *files, "--contexts", str(tmp_path / "narrow.vec"))
        )
    (tmp_path / "other.tsv").write_text(f"{WORDS[0]} 1\n")
    with pytest.raises(InputError, match=f"other.tsv: lacks {len(WORDS) - 1} words"):
        data.load_source(
            config_of("custom", *files, "--counts", str(tmp_path / "other.tsv"))
        )


def test_baselines_have_columns_of_one_scale():
    rng = np.random.default_rng(0)
    words = tuple("abcdefg")
    u, v, other = rng.normal(2, 3, size=(3, 7, 2)).astype(np.float32)
    tables = static.WordTables(words, np.ones(7, np.int64), u, v)
    published = vectors.WordVectors(words[1:], other[1:])
    found = model.baselines(tables, published, np.array([0, 4]))

    def expected(rows):
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    np.testing.assert_allclose(found["U"], expected(u)[[0, 4]], rtol=1e-5)
    np.testing.assert_allclose(found["U+V"], expected(u + v)[[0, 4]], rtol=1e-5)
    np.testing.assert_array_equal(found["WG5"][0], 0)  # of a word that it lacks
    np.testing.assert_allclose(found["WG5"][1], expected(other[1:])[3], rtol=1e-5)
    assert set(model.baselines(tables)) == {"U", "U+V"}


def test_classifiers_read_rows_of_length_one_and_no_other_change(files):
    """The paper's F is for lengths there; products are the classifier's own matter."""
    config = config_of("custom", *files, "--alphas", "-3", "--limits", "t1")
    one = data.load_source(config).get("6d", 0)
    found = {str(n): x for n, x in extrinsic._embedded(config, one, ("U+V", "ud"))}
    of = model.geometry(config, one, "U+V", "ud")
    rows = alpha.alpha_embedding(of, -3.0)
    lengths = np.sqrt(np.einsum("wi,ij,wj->w", rows, of.fisher, rows))[:, np.newaxis]
    np.testing.assert_allclose(
        found["E-U+V-ud-F (α = -3)"], rows / lengths, rtol=1e-5, atol=1e-6
    )
    plain = found["E-U+V-ud-I (α = -3)"]
    np.testing.assert_allclose(plain, normalize.unit(rows), rtol=1e-5, atol=1e-6)


def test_names_are_the_papers():
    assert str(Name("U+V", "ud", "F", "t3-w")) == "LE-U+V-ud-F-t3-w"
    assert str(Name("U", "0", "I", "-1.5")) == "E-U-0-I (α = -1.5)"
    name = Name("U+V", "0", "nF-pI", "1")
    assert Name.of(name.system, "1") == name


def asked_of(questions=(), pairs=()):
    return data.Tests({}, pairs, None, {"all": questions}, ())


def test_items_that_are_the_same_share_a_fold():
    """Whatever their case, and pairs in either order; else a test item is tuned on."""
    rng = np.random.default_rng(0)
    names = ["e0", "e1"]
    asked = [Analogy("a", "b", "c", str(q)) for q in range(20)]
    asked += [Analogy("A", "b", "c", str(q)) for q in range(20)]
    pairs = [WordPair("a", str(q), rng.random()) for q in range(20)]
    pairs += [WordPair(str(q), "A", rng.random()) for q in range(20)]
    values = {name: rng.random(40) for name in names}
    part = intrinsic.Part({}, values, values)
    chooser = chosen.Chooser(config_of("smoke"), asked_of(asked, pairs), [part])
    for [picks] in (
        chooser.by_questions(names, np.ones(40, bool)),
        chooser.by_pairs(names),
    ):
        assert sorted(sum(pick.items) for pick in picks) == [12, 14, 14]
        for pick in picks:
            np.testing.assert_array_equal(pick.items[:20], pick.items[20:])


def part_of(items):
    return intrinsic.Part(
        {}, {}, {name: np.array(x, float) for name, x in items.items()}
    )


def test_alpha_is_chosen_on_the_other_folds():
    """By a loop over folds; one question has no answer in any table."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        items = {f"e{i}": rng.random(40) < 0.3 + 0.1 * i for i in range(4)}
        parts.append(part_of(items))
        for one in parts[-1].items.values():
            one[7] = np.nan
    own = np.arange(40) < 30
    questions = [Analogy("a", "b", "c", str(q)) for q in range(40)]
    chooser = chosen.Chooser(config_of("smoke"), asked_of(questions), parts)
    names = [f"e{i}" for i in range(4)]
    picks = chooser.by_questions(names, own)
    fold = data.folds(questions, 3)
    assert sorted(np.bincount(fold)) == [13, 13, 14]
    for part, of_seed, items in zip(parts, picks, chooser.items(picks), strict=True):
        expected = np.full(40, np.nan)
        for f, pick in enumerate(of_seed):
            elsewhere = [q for q in range(30) if fold[q] != f and q != 7]
            means = [part.items[n][elsewhere].mean() for n in names]
            assert part.items[pick.name][elsewhere].mean() == max(means)
            here = [q for q in range(30) if fold[q] == f]
            expected[here] = part.items[pick.name][here]
        np.testing.assert_array_equal(items, expected)
    spread = chooser.spread(names[:1], own)
    assert spread == [0.0, 0.0]  # one alpha alone does not spread
    assert min(chooser.spread(names, own)) > 0


def test_alpha_is_chosen_on_the_other_seeds():
    values = {"a": [9.0, 1.0, 2.0], "b": [3.0, 3.0, 3.0], "c": [0.0, 4.0, 8.0]}
    chooser = chosen.Chooser(config_of("smoke"), asked_of(), [])
    assert chooser.by_seeds(values) == ["c", "a", "a"]
    assert chooser.by_seeds({"a": [1.0]}) is None


def test_parts_survive_the_disk(tmp_path):
    part = intrinsic.Part(
        {"a": {"all": 1.5}, "b": {"all": 2.0}},
        {"a": np.array([0.5, np.nan]), "b": np.array([0.25, 0.0])},
        {},
    )
    part.write(tmp_path / "new" / "part.npz")
    read = intrinsic.Part.read(tmp_path / "new" / "part.npz")
    assert read.scores == part.scores and read.items == {}
    for name, cosines in part.cosines.items():
        np.testing.assert_array_equal(read.cosines[name], cosines)


@pytest.fixture(scope="module")
def documents():
    config = config_of("smoke", "--classifier.validation", "0.2")
    return data.load_documents(config, "imdb", WORDS)


def test_documents_are_split_by_class(documents):
    sizes = {part: len(rows) for part, rows in documents.rows.items()}
    assert sizes == {"train": 240, "dev": 60, "test": 100}
    rows = np.concatenate(list(documents.rows.values()))
    assert sorted(rows) == list(range(400))
    by_class = np.bincount(documents.labels[documents.rows["dev"]])
    assert by_class.tolist() == [30, 30]
    texts, labels = documents.part("test")
    known = [w for w in WORLD.test[0].tokens if w in WORDS]
    assert [WORDS[i] for i in texts.values[: texts.offsets[1]]] == known
    assert labels[0] == WORLD.test[0].label
    total = sum(len(t.tokens) for t in (*WORLD.train, *WORLD.test))
    assert documents.unknown == pytest.approx(1 - len(documents.tokens.values) / total)


def test_means_are_of_the_words_of_a_text():
    table = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    texts = batching.Ragged.of([[0, 0, 4], [], [2]])
    expected = [(2 * table[0] + table[4]) / 3, np.zeros(3), table[2]]
    np.testing.assert_allclose(classifiers.Means(texts, 5)(table), expected, rtol=1e-6)


def test_systems_side_by_side_learn_as_each_alone(documents, tmp_path):
    rng = np.random.default_rng(0)
    config = dataclasses.replace(
        config_of("smoke", "--no-progress"),
        classifier=Classifier(epochs=2, batch_size=40, learning_rate=0.1),
    )
    features = {
        part: (
            rng.normal(size=(len(rows), 2, 3))
            + documents.labels[rows][:, np.newaxis, np.newaxis]
        ).astype(np.float32)
        for part, rows in documents.rows.items()
    }
    scores = {}
    for place, names in (([0, 1], ["a", "b"]), ([1], ["b"])):
        some = {part: x[:, place] for part, x in features.items()}
        folder = epath.Path(tmp_path) / "".join(names)
        linear = classifiers.Linear(config, 2)
        linear.fit(documents, some, names, folder, seed=3)
        lines = [x for x in train.read_metrics(folder) if "dev/accuracy/b" in x]
        scores[len(names)] = lines
        variables = train.load_params(folder)
        mean = variables["batch_stats"]["norm"]["mean"][-1]
        np.testing.assert_allclose(mean, features["train"][:, 1].mean(0), rtol=1e-4)
    assert len(scores[1]) == 2
    for alone, beside in zip(scores[1], scores[2], strict=True):
        for name in ("dev/accuracy/b", "test/accuracy/b", "test/AUC/b"):
            assert alone[name] == pytest.approx(beside[name], abs=1e-3)
    assert scores[1][-1]["test/AUC/b"] > 80


def test_the_bilstm_reads_cut_texts_and_rows_from_one(documents, tmp_path):
    settings = Classifier(hidden=3, features=3, epochs=1, batch_size=40, longest=4)
    config = dataclasses.replace(
        config_of("smoke", "--no-progress"), classifier=settings
    )
    reader = classifiers.Recurrent(config, 2, len(WORDS), 5)
    reader.read(documents)
    tokens = reader._columns["train"]["tokens"]
    assert tokens.lengths.max() == 4 and tokens.values.min() >= 1
    table = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)
    reader.fit(table, "mine", epath.Path(tmp_path), seed=0)
    variables = train.load_params(tmp_path)
    base = variables["frozen"]["embed"]["base"]
    np.testing.assert_array_equal(base, np.concatenate([np.zeros((1, 5)), table]))
    [line] = [x for x in train.read_metrics(tmp_path) if "dev/accuracy/mine" in x]
    padded = reader._columns["dev"]["tokens"].padded(np.arange(60), 8)
    probabilities = reader._predict(
        jax.tree.map(jnp.asarray, variables), {"tokens": jnp.asarray(padded)}
    )
    hits = np.asarray(probabilities).argmax(1) == reader._columns["dev"]["labels"]
    assert line["dev/accuracy/mine"] == pytest.approx(100 * hits.mean())
