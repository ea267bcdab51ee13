"""Whole training runs: devices, resuming, what is learnt, what is written."""

import dataclasses
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxemb import axes, static, train
from jaxemb.analysis import checkpoint, cost
from jaxemb.data import vectors
from jaxemb.errors import InputError
from jaxemb.static import descent, rows, trainer
from jaxemb.static.blocks import Blocks
from jaxemb.static.trainer import Prepared
from tests.static import corpora

LAYOUT = static.Layout(chunk=200, groups=8, group=8)
TRAINING = static.Training(dim=8, epochs=2, layout=LAYOUT, learning_rate=0.1)
OBJECTIVES = [
    static.SkipGram(window=2, shared=4),
    static.CBOW(window=2, shared=4),
    static.SubwordSkipGram(window=2, shared=4, minn=2, maxn=3, buckets=50),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return corpora.build(tmp_path_factory.mktemp("corpus") / "c", held_out=10)


def run(text, objective, mesh, steps=10, **options):
    prepared = Prepared(text, objective, TRAINING)
    step = train.data_parallel(
        static.make_step(objective, TRAINING, 20), mesh, **options
    )
    state = step.place(prepared.state)
    losses = []
    for number in range(steps):
        state, metrics = step(state, prepared.batches(number))
        loss = jax.device_get(metrics["loss"])
        losses.append(float(loss.total / loss.count))
    return jax.device_get(state.params), losses


@pytest.fixture(scope="module")
def one_device():
    return train.make_mesh(jax.devices()[:1])


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "pmap"},
        {"shard_rows": ["^params/"]},
    ],
    ids=["jit", "pmap", "sharded"],
)
def test_eight_devices_equal_one(text, mesh, one_device, objective, options):
    params, losses = run(text, objective, mesh, **options)
    alone, alone_losses = run(text, objective, one_device)
    for name, table in alone.items():
        np.testing.assert_allclose(params[name], table, atol=1e-5)
    for name in ("input", "output"):  # rows that fill up are never moved
        assert len(params[name]) == axes.ROWS > len(text.words)
        assert not np.any(params[name][len(text.words) :])
    np.testing.assert_allclose(losses, alone_losses, atol=1e-5)
    assert np.abs(alone["output"]).max() > 0.01  # something was learnt


def test_the_same_seed_gives_the_same_bits(text, mesh):
    objective = OBJECTIVES[0]
    first, again = (run(text, objective, mesh)[0] for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, again)


@pytest.mark.parametrize("shard_rows", [(), ("^params/",)], ids=["whole", "sharded"])
def test_devices_exchange_rows_not_tables(tmp_path, mesh, shard_rows):
    """No collective is as large as a table, however large the vocabulary."""
    sentences = [[f"w{i}", f"w{i + 1}"] for i in range(4096)]
    text = corpora.build(tmp_path / "c", sentences)
    objective = OBJECTIVES[0]
    prepared = Prepared(text, objective, TRAINING)
    step = train.data_parallel(
        static.make_step(objective, TRAINING, 20), mesh, shard_rows=shard_rows
    )
    state = step.place(prepared.state)
    program = step.lower(state, prepared.batches(0)).compile().as_text()
    sizes = [found.numbers for found in cost.collectives(program)]
    assert sizes
    # Every row that a block reads or writes, once: centres in one table, words around
    # and noise in the other.
    outputs = LAYOUT.group + 2 * objective.window + objective.shared
    most = LAYOUT.groups * (LAYOUT.group + outputs)
    assert max(sizes) <= most * TRAINING.dim
    assert most < len(text.words) / 10


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_steps_lower_for_accelerators(text, one_device, objective):
    prepared = Prepared(text, objective, TRAINING)
    step = train.data_parallel(static.make_step(objective, TRAINING, 20), one_device)
    state = step.place(prepared.state)
    lowered = step.lower(state, prepared.batches(0), lowering_platforms=("tpu", "cuda"))
    assert "stablehlo.scatter" in lowered.as_text()


def test_a_broken_run_goes_on_to_the_same_bits(text, tmp_path):
    objective = OBJECTIVES[0]
    whole = static.train(text, objective, TRAINING, tmp_path / "a", progress=False)
    static.train(text, objective, TRAINING, tmp_path / "b", progress=False)
    steps = sorted(
        int(p.name)
        for p in (tmp_path / "b" / "checkpoints").iterdir()
        if p.name.isdigit()
    )
    assert len(steps) == TRAINING.epochs
    shutil.rmtree(tmp_path / "b" / "checkpoints" / str(steps[-1]))
    again = static.train(text, objective, TRAINING, tmp_path / "b", progress=False)
    np.testing.assert_array_equal(whole.input, again.input)
    np.testing.assert_array_equal(whole.output, again.output)
    lines = [(tmp_path / x / "metrics.jsonl").read_text() for x in "ab"]
    assert lines[0] == lines[1]
    held_out = [
        line for line in train.read_metrics(tmp_path / "a") if "held_out/loss" in line
    ]
    assert len(held_out) == TRAINING.epochs
    # Words drawn at random teach nothing of their neighbours: coins to the end.
    score = held_out[-1]["held_out/loss"]
    assert score == pytest.approx(coins_a_word(text), rel=0.02)


def coins_a_word(text, objective=OBJECTIVES[0]):
    """Held-out loss of words, if every choice is a coin: log 2, six times a pair."""
    blocks = Blocks(
        dataclasses.replace(text.held_out, counts=text.counts),
        LAYOUT,
        window=objective.window,
    )
    batches = [blocks(i) for i in range(blocks.num_chunks)]
    pairs = np.concatenate([(b["before"] + b["after"]).ravel() for b in batches])
    predictions = (
        pairs.sum() if isinstance(objective, static.SkipGram) else sum(pairs > 0)
    )
    return 6 * np.log(2) * predictions / np.sum(pairs > 0)


@pytest.mark.parametrize("objective", OBJECTIVES[:2], ids=lambda o: type(o).__name__)
def test_held_out_loss_is_that_of_a_word_of_the_text_kept_apart(
    text, objective, monkeypatch
):
    prepared = Prepared(text, objective, TRAINING)
    step = train.data_parallel(lambda s, b: (s, {}))
    state = step.place(prepared.state)  # outputs begin at zero
    score = prepared.evaluate(state)["held_out/loss"]
    assert score == pytest.approx(coins_a_word(text, objective), rel=1e-5)
    laid_out = []
    whole = Blocks.__call__
    monkeypatch.setattr(
        Blocks, "__call__", lambda self, i: laid_out.append(i) or whole(self, i)
    )
    assert prepared.evaluate(state)["held_out/loss"] == score
    assert laid_out == list(range(len(laid_out))) != []  # anew, not from memory


def test_a_held_out_part_without_neighbours_has_no_loss(tmp_path):
    sentences = [["a", "b", "c"] if i % 5 else ["a"] for i in range(1, 41)]
    text = corpora.build(tmp_path / "c", sentences, held_out=5)
    assert len(text.held_out) == 8
    training = dataclasses.replace(TRAINING, sample=0.0)
    static.train(text, OBJECTIVES[0], training, tmp_path / "run", progress=False)
    lines = train.read_metrics(tmp_path / "run")
    assert lines and not any("held_out/loss" in line for line in lines)


@pytest.mark.parametrize(
    ("sentences", "sample"), [([["a"], ["b"]], 0.0), ([["a", "b"] * 20], 1e-9)]
)
def test_a_text_with_nothing_to_learn_is_refused(tmp_path, sentences, sample):
    text = corpora.build(tmp_path / "c", sentences)
    training = dataclasses.replace(TRAINING, sample=sample)
    with pytest.raises(
        InputError, match=r"c: nothing to learn in epoch 1, since no se"
    ):
        static.train(text, OBJECTIVES[0], training, tmp_path / "run", progress=False)


def test_the_loss_of_a_line_is_over_its_words_not_over_its_steps(tmp_path, one_device):
    """Of two steps one has a single pair, the other many: words count, not steps."""
    sentences = [["a", "b"], *[["c", "d", "e", "f"]] * 30, *[["g"]] * 110]
    text = corpora.build(tmp_path / "c", sentences)
    layout = static.Layout(chunk=116, groups=8, group=8)
    training = dataclasses.replace(TRAINING, epochs=1, layout=layout, sample=0.0)
    objective = OBJECTIVES[0]
    static.train(
        text, objective, training, tmp_path / "run", mesh=one_device, progress=False
    )
    prepared = Prepared(text, objective, training)
    step = jax.jit(static.make_step(objective, training, prepared.num_chunks))
    state, losses = prepared.state(), []
    for number in range(prepared.num_chunks):
        state, metrics = step(state, prepared.batches(number))
        losses.append([float(x) for x in metrics["loss"]])
    totals, counts = np.array(losses).T
    assert min(counts) < max(counts) / 4
    (line,) = train.read_metrics(tmp_path / "run")
    assert line["train/loss"] == pytest.approx(totals.sum() / counts.sum(), rel=1e-6)


@pytest.mark.parametrize("first", ["eight", "one"])
def test_a_checkpoint_goes_on_on_another_number_of_devices(text, tmp_path, first):
    """Rows shared by eight devices, then whole tables on one, and the other way."""
    objective = OBJECTIVES[2]
    ways = {
        "eight": {"shard_rows": True},
        "one": {"mesh": train.make_mesh(jax.devices()[:1])},
    }
    second = next(way for way in ways if way != first)
    options = {"progress": False, "save_every": 2}
    whole = static.train(
        text, objective, TRAINING, tmp_path / "whole", **options, **ways["one"]
    )
    begun = tmp_path / "begun"
    static.train(text, objective, TRAINING, begun, **options, **ways[first])
    steps = sorted(int(p.name) for p in (begun / "checkpoints").iterdir())
    assert steps[-1] - steps[0] <= 2  # as often as `save_every` says
    shutil.rmtree(begun / "checkpoints" / str(steps[-1]))
    (begun / "metrics.jsonl").unlink()
    ended = static.train(text, objective, TRAINING, begun, **options, **ways[second])
    np.testing.assert_allclose(ended.input, whole.input, atol=1e-5)
    np.testing.assert_allclose(
        ended.subwords.buckets, whole.subwords.buckets, atol=1e-5
    )
    assert train.read_metrics(begun)[-1]["step"] == steps[-1]


def test_initial_tables_are_those_of_as_many_rows():
    """However many rows fill up: what a seed gives does not depend on them."""
    key = jax.random.key(3)
    table = rows.uniform(key, 7, (4,), 5.0)
    wanted = (jax.random.uniform(key, (7, 4)) - 0.5) / 5
    np.testing.assert_array_equal(table[:7], wanted)
    assert table.shape == (axes.ROWS, 4) and not table[7:].any()
    for devices in (1, 2, 3, 4, 6, 8, 12, 24, 256, 512):
        assert axes.filled_rows(40_001) % devices == 0
    assert axes.filled_rows(axes.ROWS) == axes.ROWS


def test_words_of_a_checkpoint_are_found_though_rows_fill_up(text, tmp_path):
    tables = static.train(text, OBJECTIVES[0], TRAINING, tmp_path / "r", progress=False)
    params = train.load_params(tmp_path / "r")
    words = checkpoint.find_words(tmp_path / "r")
    named = checkpoint.embedding_table(params, words, "params/input")
    np.testing.assert_array_equal(named.matrix, tables.input)
    assert named.words == text.words


def test_a_rate_that_explodes_is_named(text, tmp_path, one_device, monkeypatch):
    """Where the tables are still finite: huge numbers may take long to overflow."""
    monkeypatch.setattr(trainer, "_MOST", 1e9)  # else no rate explodes so small a text
    training = dataclasses.replace(TRAINING, learning_rate=5.0, epochs=10)
    with pytest.raises(
        train.Diverged, match=r"parameters are finite.*a learning rate below 5\.0"
    ):
        static.train(
            text,
            OBJECTIVES[0],
            training,
            tmp_path / "run",
            mesh=one_device,
            progress=False,
        )


@pytest.mark.parametrize(
    ("total", "told"), [(49.0, 49.0), (51.0, np.inf), (np.nan, np.nan), (0.0, 0.0)]
)
def test_a_mean_that_is_too_large_is_infinite(total, told):
    shown = descent.unless_exploded(jnp.float32(total), jnp.float32(10), 5.0)
    np.testing.assert_equal(float(shown), told)


def test_an_option_that_is_none(text, tmp_path):
    with pytest.raises(TypeError, match="progres"):
        static.train(text, OBJECTIVES[0], TRAINING, tmp_path / "run", progres=False)
    with pytest.raises(InputError, match="save_every is 0; expected 1 or more"):
        static.train(text, OBJECTIVES[0], TRAINING, tmp_path / "run", save_every=0)


def test_another_corpus_does_not_go_on(text, tmp_path):
    static.train(text, OBJECTIVES[0], TRAINING, tmp_path / "run", progress=False)
    other = corpora.build(tmp_path / "c", corpora.random_sentences(seed=1))
    with pytest.raises(ValueError, match="corpus"):
        static.train(other, OBJECTIVES[0], TRAINING, tmp_path / "run", progress=False)
    kept = (tmp_path / "run" / "words.txt").read_text()
    assert kept.split() == list(text.words)
    same_counts = corpora.build(
        tmp_path / "d", [s[::-1] for s in corpora.random_sentences()], held_out=10
    )
    np.testing.assert_array_equal(same_counts.counts, text.counts)
    assert same_counts.words == text.words
    with pytest.raises(ValueError, match="corpus"):
        static.train(
            same_counts, OBJECTIVES[0], TRAINING, tmp_path / "run", progress=False
        )


def test_sgns_factorises_shifted_pmi(tmp_path):
    """Levy and Goldberg (2014): with enough dimensions w . c is PMI(w, c) - log k."""
    rng = np.random.default_rng(0)
    vocab, window, negatives = 6, 1, 2
    follows = rng.dirichlet(np.full(vocab, 2.0), vocab)
    words, sentences = 0, []
    for _ in range(400):
        sentence = []
        for _ in range(50):
            words = rng.choice(vocab, p=follows[words])
            sentence.append(f"w{words}")
        sentences.append(sentence)
    text = corpora.build(tmp_path / "c", 50 * sentences)
    training = static.Training(
        dim=12,
        epochs=2,
        learning_rate=0.01,
        last_learning_rate=1e-5,
        sample=0.0,
        dynamic=False,
        noise_power=1.0,
        layout=static.Layout(chunk=20_000, groups=8, group=32),
    )
    objective = static.SkipGram(window=window, negatives=negatives, shared=32)
    alone = train.make_mesh(jax.devices()[:1])
    tables = static.train(
        text, objective, training, tmp_path / "run", mesh=alone, progress=False
    )
    joint = np.zeros((vocab, vocab))
    for pair in corpora.pairs_by_enumeration(text, window):
        joint[pair] += 1
    assert joint.min() > 20
    centre = joint.sum(axis=1, keepdims=True)
    noise = text.counts / text.counts.sum()
    wanted = np.log(joint / (centre * noise[None])) - np.log(negatives)
    product = tables.input @ tables.output.T
    assert np.abs(product - wanted).max() < 0.15
    assert np.corrcoef(product.ravel(), wanted.ravel())[0, 1] > 0.99
    assert np.abs(wanted).max() > 0.8


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
def test_words_of_a_topic_come_together(tmp_path, objective):
    rng = np.random.default_rng(0)
    topics = [[f"{t}{i}{t}" for i in range(10)] for t in "ab"]
    sentences = [list(rng.choice(topics[i % 2], 8)) for i in range(600)]
    text = corpora.build(tmp_path / "c", sentences)
    training = dataclasses.replace(
        TRAINING,
        epochs=15,
        learning_rate=0.03,
        sample=0.0,
        layout=static.Layout(chunk=5000, groups=8, group=8),
    )
    alone = train.make_mesh(jax.devices()[:1])
    tables = static.train(
        text, objective, training, tmp_path / "run", mesh=alone, progress=False
    )
    unit = tables.vectors().normalised()
    rows = [unit.lookup(topic) for topic in topics]
    within = min((r @ r.T).mean() for r in rows)
    across = (rows[0] @ rows[1].T).mean()
    assert within > across + 0.3


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        (static.SkipGram(), {"learning_rate": 0.05}),
        (static.SkipGram(window=10), {"dynamic": False}),
        (static.SkipGram(negatives=15), {}),
        (static.CBOW(window=10), {}),
    ],
)
def test_a_word_that_comes_in_bursts_does_not_explode(tmp_path, objective, options):
    """An update may meet a word far more often than its frequency tells."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in rng.zipf(1.2, 60_000) if i < 3000]
    burst = ["cadmium" if i % 8 == 0 else w for i, w in enumerate(words[:2000])]
    flat = words[:30_000] + burst + words[30_000:]
    text = corpora.build(
        tmp_path / "c", [flat[i : i + 25] for i in range(0, len(flat), 25)]
    )
    training = static.Training(dim=20, epochs=3, **options)
    tables = static.train(
        text,
        objective,
        training,
        tmp_path / "run",
        mesh=train.make_mesh(jax.devices()[:1]),
        progress=False,
    )
    assert np.abs(tables.input).max() < 6
    assert np.abs(tables.output).max() < 6


def test_vectors_load_in_gensim(text, tmp_path):
    models = pytest.importorskip("gensim.models")
    objective = OBJECTIVES[2]
    tables = static.train(text, objective, TRAINING, tmp_path / "run", progress=False)
    table = tables.vectors()
    vectors.write_word_vectors(tmp_path / "v.txt", table)
    keyed = models.KeyedVectors.load_word2vec_format(tmp_path / "v.txt")
    assert tuple(keyed.index_to_key) == text.words
    np.testing.assert_array_equal(keyed.vectors, table.matrix)
    vectors.write_word_vectors(tmp_path / "v.bin", table)
    fast = models.fasttext.load_facebook_vectors(str(tmp_path / "v.bin"))
    np.testing.assert_allclose(fast["w3"], table["w3"], atol=1e-6)
    np.testing.assert_allclose(
        fast["w333"], table.lookup(["w333"], oov="subword")[0], atol=1e-6
    )
    assert (tmp_path / "run" / "words.txt").read_text().split() == list(text.words)


def test_kinds_of_vectors(text, tmp_path):
    tables = static.train(text, OBJECTIVES[0], TRAINING, tmp_path / "r", progress=False)
    both = tables.vectors("concatenation").matrix
    np.testing.assert_array_equal(both[:, :8], tables.vectors("input").matrix)
    np.testing.assert_array_equal(both[:, 8:], tables.vectors("output").matrix)
    np.testing.assert_allclose(
        tables.vectors("sum").matrix, tables.input + tables.output
    )
    with pytest.raises(ValueError, match="expected one of input"):
        tables.vectors("mean")
