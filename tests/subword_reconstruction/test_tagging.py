"""Taggers over characters, words and both."""

import dataclasses
import itertools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath

from experiments.common import treebank as treebanks
from experiments.common.datasets import planted
from experiments.common.findings import Findings
from experiments.subword_reconstruction import data, model, reconstruct, tagged, tagging
from experiments.subword_reconstruction.treebank import Texts, encode
from jaxemb import nn as jnn
from jaxemb import optim, train
from jaxemb.data import batching, sources, vocab
from jaxemb.data.vectors import WordVectors
from tests.subword_reconstruction.shared import SMOKE, config_of


def test_every_word_is_spelled_and_placed(world):
    treebank, characters = world.treebank, world.teacher.characters
    ids = np.arange(len(treebank.words))
    spelled = tagging.Spelled(treebank, ids, unknown=0.5)
    plan = batching.Shuffled(treebank.splits["train"], 8, seed=0)
    batch = plan(0)
    spelled.note(batch["types"])
    made = spelled.batch(batch)
    assert made["short"].shape[1] == 8 and len(made["short"]) % 64 == 0
    letters = [
        "".join(characters.decode(row))
        for half in (made["short"], made["long"])
        for row in half
    ]
    for sentence, types in zip(made["place"], batch["types"], strict=True):
        for place, number in zip(sentence, types, strict=True):
            word = treebank.words[number] if number else ""
            assert letters[place] == word
    np.testing.assert_array_equal(made["ids"], batch["types"])
    hidden = spelled.batch(batch, np.random.default_rng(0))["ids"]
    changed = hidden != made["ids"]
    assert (hidden[changed] == vocab.UNK_ID).all()
    assert treebank.singletons[batch["types"][changed]].all()
    assert 0 < changed.sum() < treebank.singletons[batch["types"]].sum()


def test_long_words_keep_their_ends():
    letters = batching.Ragged.of([np.arange(1, 41), np.arange(1, 25)])
    cut = treebanks.shortened(letters, 24)
    assert cut.lengths.tolist() == [24, 24]
    assert cut.values[:24].tolist() == [*range(1, 13), *range(29, 41)]


def test_unseen_words_are_looked_up_only_where_the_teacher_has_them():
    """FULL knows the training part; FULL+EMB what the whole teacher has beside it."""
    sentence = lambda *words: treebanks.Sentence(words, ("N",) * len(words))
    parts = {
        "train": [sentence("the", "dog", "the")],
        "dev": [sentence("The", "cat", "dgo")],
        "test": [sentence("Cat", "dog", "cow")],
    }
    whole = WordVectors(("the", "cat", "cow"), np.eye(3, dtype=np.float32))
    texts = Texts(parts, planted("made up", 3))
    every = vocab.Vocab.build("the dog The cat dgo Cat cow".split())
    encoded = encode(texts, every, whole)
    spelled = batching.Ragged.of([every.encode(word) for word in ("the", "cat")])
    taught = data.Teacher(
        whole.subset(("the", "cat")), every, spelled, 3, planted("table", 3)
    )
    world = data.World(taught, data.Tests(), encoded)
    built = tagging.Taggers(SMOKE, world, epath.Path("unused"))
    known = {False: {"the", "dog"}, True: {"the", "dog", "The", "cat", "Cat", "cow"}}
    assert len(encoded.words) == 2 + len(known[True]) + 1
    for pretrained, words in known.items():
        for split in ("dev", "test"):
            for batch in built._held_out(split):
                ids = built._spelled[pretrained].batch(batch)["ids"]
                for row, looked_up in zip(batch["types"], ids, strict=True):
                    for type_, found in zip(row, looked_up, strict=True):
                        own = type_ == vocab.PAD_ID or encoded.words[type_] in words
                        assert found == (type_ if own else vocab.UNK_ID)
    # "dog" is in the treebank, but not in the teacher: one of three words.
    assert encoded.share_without_vector == pytest.approx(1 / 3)


def test_words_by_what_a_system_knows(world, taggers):
    """FULL+EMB starts from the teacher; entries and parameters are as shipped."""
    treebank, teacher = world.treebank, world.teacher
    systems = {s.name: s for s in tagged.systems(SMOKE)}
    spelled = ("", "(D1)", "(D2)", "(Dcos)", "(D1, permuted)")
    assert list(systems) == ["FULL", "FULL+EMB", *(f"CHAR{name}" for name in spelled)]
    start = taggers.params(systems["FULL+EMB"], 0)
    vector = teacher.vectors[treebank.words[5]]
    np.testing.assert_array_equal(start["words"]["table"][5], vector)
    full = taggers.stored(tagging.FULL)
    emb, char = (taggers.stored(systems[n]) for n in ("FULL+EMB", "CHAR"))
    letters = set("".join(treebank.words[2 : treebank.known]))
    assert char["lookup entries"] == len(letters)
    assert full["lookup entries"] == len(letters) + treebank.known - 2
    known = set(treebank.words[2 : treebank.known]) | set(teacher.vectors.words)
    assert emb["lookup entries"] == len(letters) + len(known)
    dim = teacher.vectors.dim
    gap = emb["parameters"] - full["parameters"]
    assert gap == dim * (emb["lookup entries"] - full["lookup entries"])
    params = taggers.params(systems["CHAR"], 0)
    numbers = sum(x.size for x in jax.tree.leaves(params))
    extra = len(teacher.characters) - 2 - len(letters)
    assert char["parameters"] == numbers - extra * SMOKE.hidden


def test_a_tagger_begins_with_the_student_and_fresh_moments(world, taggers):
    """Sections 2 and 9.9: stage 2 takes over the characters, not Adam's state."""
    system = {s.name: s for s in tagged.systems(SMOKE)}["CHAR(D1)"]
    params = taggers.params(system, 0)
    one = reconstruct.Taught("relu", "D1", 0)
    saved = train.load_params(one.folder(taggers._workdir))["params"]
    jax.tree.map(np.testing.assert_array_equal, params["char"], saved)
    state = train.State.create(
        {"params": params}, optim.falling_adam(1e-3, 5), jax.random.key(0)
    )
    moments = [x for x in jax.tree.leaves(state.opt_state) if np.ndim(x) > 0]
    assert moments and not any(np.any(x) for x in moments)


def test_accuracy_counts_real_words_once(world, taggers):
    """Against a loop over sentences, one at a time and without padding."""
    program = taggers._program(False, 0.1)
    treebank = world.treebank
    params = {"params": taggers.params(tagging.System("CHAR"), 3)}
    params = jax.tree.map(jnp.asarray, params)
    spelled = taggers._spelled[False]
    counts = [
        program.hits(params, spelled.batch(batch)) for batch in taggers._held_out("dev")
    ]
    found = sum(counts[1:], start=counts[0])
    columns = treebank.splits["dev"]
    right = total = 0
    length = taggers._buckets[-1]
    for row in range(len(columns["types"])):
        own = {n: c.padded(np.array([row]), length) for n, c in columns.items()}
        batch = spelled.batch(own)
        inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
        logits = program.module.apply(params, *inputs, deterministic=True)
        size = int(columns["types"].lengths[row])
        best = np.asarray(logits)[0, :size].argmax(axis=1)
        right += int(np.sum(best == own["tags"][0, :size]))
        total += size
    assert float(found.value) == pytest.approx(right / total)


def test_words_are_looked_up_and_spelled_side_by_side(world, full):
    """FULL's input is e_w and h^w of each word, one word at a time."""
    module, variables, batch = full
    params, dim = variables["params"], module.dim
    char = jnn.CharBiLSTM(module.characters, dim, module.hidden)
    spell = jax.jit(
        lambda x: char.apply({"params": params["char"]}, x, deterministic=True)
    )
    short = len(batch["short"])
    assert batch["place"].max() >= short  # some word is among the long ones
    vectors = np.zeros((*batch["ids"].shape, 2 * dim), np.float32)
    for row, column in np.argwhere(batch["ids"] != vocab.PAD_ID):
        at = batch["place"][row, column]
        one = batch["short"][at] if at < short else batch["long"][at - short]
        letters = np.pad(one, (0, batch["long"].shape[1] - len(one)))
        e = params["words"]["table"][batch["ids"][row, column]]
        vectors[row, column] = np.concatenate([e, spell(letters[None])[0]])
    mask = jnp.asarray(batch["ids"] != vocab.PAD_ID)
    own = {"params": params["tagger"]}
    expected = module.tagger.apply(own, jnp.asarray(vectors), mask, deterministic=True)
    inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
    found = module.apply(variables, *inputs, deterministic=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_loss_of_a_tagger_is_that_of_its_words(full):
    """Minus the log-likelihood of the right tag, a word at a time, averaged."""
    module, variables, batch = full
    inputs = [jnp.asarray(batch[n]) for n in ("short", "long", "place", "ids")]
    scores = np.asarray(module.apply(variables, *inputs, deterministic=True))
    losses = [
        np.log(np.exp(scores[place]).sum()) - scores[place][batch["tags"][place]]
        for place in map(tuple, np.argwhere(batch["ids"] != vocab.PAD_ID))
    ]
    given = jax.tree.map(jnp.asarray, batch)
    found, _ = model.tagging_loss(module)(variables, given, jax.random.key(0))
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_best_cell_of_full_is_that_of_every_system(monkeypatch, tmp_path):
    """A made-up grid of 2 × 2, whose best cell is in no corner by order."""
    rates, dropouts = (1e-3, 2e-3), (0.1, 0.5)
    accuracy = {
        tagging.Cell(1e-3, 0.1): 0.4,
        tagging.Cell(2e-3, 0.1): 0.9,
        tagging.Cell(1e-3, 0.5): 0.8,
        tagging.Cell(2e-3, 0.5): 0.3,
    }
    fitted = []

    class Outcomes:
        treebank = SimpleNamespace(tags=("N",), share_without_vector=0.25)

        def __init__(self, *_):
            pass

        def fit(self, system, cell, seed):
            fitted.append((system.name, cell, seed))
            # What FULL has on test would choose another cell.
            return {tagging.DEV: accuracy[cell], tagging.TEST: 1 - accuracy[cell]}

        def stored(self, system):
            return {"lookup entries": 1, "parameters": 2}

        def folder(self, system, cell, seed):
            return accuracy[cell]

    monkeypatch.setattr(tagged, "Taggers", Outcomes)
    monkeypatch.setattr(
        tagged.train, "evaluations", lambda at, _: [{"step": 1, tagging.DEV: at}]
    )
    settings = dataclasses.replace(
        SMOKE.tagging, learning_rates=rates, dropouts=dropouts
    )
    config = dataclasses.replace(SMOKE, tagging=settings, seeds=2)
    findings = Findings()
    tagged.study(config, None, epath.Path(tmp_path), findings)
    best = tagging.Cell(2e-3, 0.1)
    assert findings.notes["cell"] == dataclasses.asdict(best)
    assert [x for x in findings.notes.values() if x == 25.0]
    assert {(name, seed) for name, _, seed in fitted[:4]} == {("FULL", 0)}
    assert {cell for _, cell, _ in fitted[:4]} == set(accuracy)
    names = [system.name for system in tagged.systems(config)]
    assert fitted[4:] == [(name, best, seed) for name in names for seed in (0, 1)]
    rows = {(row.name, row.metric): row.values for row in findings.rows}
    assert all(rows[name, tagged.ACCURACY] == (10.0, 10.0) for name in names)
    for cell, value in accuracy.items():
        assert rows[str(cell), tagged.GRID] == (100 * value,)


@pytest.mark.data
def test_the_treebank_has_the_tags_of_the_penn_treebank():
    for name in ("ud-english-ewt", "glove-100d-subset"):
        if sources.locate(name) is None:
            pytest.skip(f"needs {name}: jaxemb data where {name}")
    config = config_of(
        *("tagging", "--tagging.sentences", "500", "--tagging.held-out", "50"),
        *("--words", "1000"),
    )
    world = data.load(config)
    treebank = world.treebank
    assert {"NN", "NNP", "VBZ", "DT", "IN", "."} <= set(treebank.tags)
    assert len(treebank.splits["train"]["types"]) == 500
    assert treebank.data.kind == "subset"
    # The teacher writes no capitals: a word that has some is found without them, and
    # both forms are entries of FULL+EMB's table.
    the = [treebank.words.index(form) for form in ("The", "the")]
    np.testing.assert_array_equal(*treebank.vectors[the])
    assert treebank.has_vector[the].all()
    assert treebank.words_with_teacher > world.teacher.size + 1
    characters = set(itertools.chain(*treebank.words[2 : treebank.known]))
    assert treebank.own_characters == len(characters)
    assert characters <= set(world.teacher.characters.words)
