import collections

import numpy as np
import pytest
import scipy.stats

from jaxemb.data import squad, synthetic, tokenize
from jaxemb.errors import InputError


@pytest.fixture(scope="module")
def world():
    return synthetic.planted_sentiment(3)


def mean_vectors(world, examples, delta=None):
    table = world.vectors.matrix.astype(np.float64)
    table = table if delta is None else table + delta
    rows = [[world.vectors.index[t] for t in example.tokens] for example in examples]
    return np.stack([table[row].mean(axis=0) * np.sqrt(len(row)) for row in rows])


def test_the_same_seed_gives_the_same_world(world):
    again, other = synthetic.planted_sentiment(3), synthetic.planted_sentiment(4)
    assert again.vectors.words == world.vectors.words
    np.testing.assert_array_equal(again.vectors.matrix, world.vectors.matrix)
    assert (again.train, again.test, again.pairs) == (
        world.train,
        world.test,
        world.pairs,
    )
    assert other.train != world.train


def test_what_is_promised_of_words_and_sentences(world):
    assert len(world.vectors) == 500 == len(set(world.vectors.words))
    assert len(world.planted) == 10 and {"not", "works"} < set(world.planted)
    assert {"good", "bad"} < world.polarity.keys()
    for examples, count in ((world.train, 2000), (world.test, 500)):
        assert len(examples) == count
        assert sum(example.label for example in examples) == count // 2
        lengths = {len(example.tokens) for example in examples}
        assert min(lengths) == 4 and max(lengths) == 24
        for example in examples:
            deciding = [word for word in example.tokens if world.polarity[word]]
            assert 1 <= len(deciding) <= 2
            signs = {world.polarity[word] for word in deciding}
            assert signs == {2 * example.label - 1}
            assert len({word in world.planted for word in deciding}) == 1
    used = {word for example in world.train + world.test for word in example.tokens}
    assert len(set(world.vectors.words) - used) >= 40


def test_only_the_planted_hide_their_polarity(world):
    along = world.vectors.matrix @ world.direction
    for word, value in zip(world.vectors.words, along, strict=True):
        shown = 0 if word in world.planted else world.polarity[word]
        assert value == pytest.approx(shown, abs=1e-5)


def test_fixed_vectors_cannot_decide_what_planted_words_decide(world):
    """Least squares on fixed mean vectors: sure of one half, chance on the rest."""
    signs = np.array([2 * example.label - 1 for example in world.train])
    weights, *_ = np.linalg.lstsq(mean_vectors(world, world.train), signs, rcond=None)
    right = collections.defaultdict(list)
    for example, score in zip(
        world.test, mean_vectors(world, world.test) @ weights, strict=True
    ):
        kind = any(word in world.planted for word in example.tokens)
        right[kind].append((score > 0) == example.label)
    assert np.mean(right[False]) > 0.95
    assert np.mean(right[True]) < 0.7


def test_group_lasso_finds_the_planted_words(world):
    """Proximal gradient on a linear model of mean vectors, in numpy alone."""
    table = world.vectors.matrix.astype(np.float64)
    bags = np.zeros((len(world.train), len(table)))
    for row, example in enumerate(world.train):
        for token in example.tokens:
            bags[row, world.vectors.index[token]] += 1 / np.sqrt(len(example.tokens))
    signs = np.array([2 * example.label - 1 for example in world.train])
    delta, weights = np.zeros_like(table), np.zeros(table.shape[1])
    rate, c = 1.0, 2e-3
    for _ in range(300):
        sentences = bags @ (table + delta)
        slope = -signs / (1 + np.exp(signs * (sentences @ weights))) / len(signs)
        step = delta - rate * np.outer(bags.T @ slope, weights)
        weights = weights - rate * sentences.T @ slope
        norms = np.linalg.norm(step, axis=1, keepdims=True)
        delta = step * np.maximum(0, 1 - rate * c / np.maximum(norms, 1e-12))
    norms = np.linalg.norm(delta, axis=1)
    top = {world.vectors.words[i] for i in np.argsort(-norms)[:10]}
    assert len(top & set(world.planted)) >= 9
    assert np.sum(norms > 0) < 250
    scores = mean_vectors(world, world.test, delta) @ weights
    assert np.mean((scores > 0) == [example.label for example in world.test]) > 0.95


def test_the_similarity_list_agrees_with_the_vectors(world):
    unit = world.vectors.matrix / np.linalg.norm(
        world.vectors.matrix, axis=1, keepdims=True
    )
    index = world.vectors.index
    cosines = [unit[index[p.first]] @ unit[index[p.second]] for p in world.pairs]
    scores = [pair.score for pair in world.pairs]
    rho = scipy.stats.spearmanr(cosines, scores).statistic
    assert len(scores) == 300 and 0.9 < rho < 1
    assert all(0 <= score <= 10 for score in scores)


@pytest.mark.parametrize(
    "change",
    [
        *({"num_planted": n} for n in (3, 0, -2)),
        *({"num_polar": n} for n in (3, 0, -2)),
        {"num_words": 80},
        {"dim": 1},
        {"lengths": (5, 4)},
    ],
)
def test_worlds_that_cannot_be(change):
    with pytest.raises(InputError):
        synthetic.planted_sentiment(**change)


def test_small_worlds():
    world = synthetic.planted_sentiment(
        0, num_words=40, num_planted=2, num_polar=4, dim=4, num_train=8, num_test=4
    )
    assert world.planted == ("not", "still") and len(world.train) == 8


def test_planted_pairs_are_labelled_by_thing_and_stance():
    world = synthetic.planted_inference(1)
    kinds = dict(zip(world.features.words, world.features.matrix, strict=True))
    assert world.features.words == world.vectors.words
    thing = world.features.names.index("thing")

    def things(text):
        return [word for word in text.split() if kinds[word][thing]]

    for pairs, count in ((world.train, 900), (world.test, 300)):
        labels = [pair.label for pair in pairs]
        assert [labels.count(label) for label in range(3)] == [count // 3] * 3
        for pair in pairs:
            (own,), (other,) = things(pair.premise), things(pair.hypothesis)
            said = {world.polarity.get(word, 0) for word in pair.hypothesis.split()}
            sign = (said - {0}).pop()
            expected = 1 if own != other else {1: 0, -1: 2}[sign]
            assert pair.label == expected
    stances = world.vectors.lookup(list(world.polarity))
    unit = stances / np.linalg.norm(stances, axis=1, keepdims=True)
    assert (unit @ unit.T).min() > 0.4  # neighbours, whichever side they are on
    again = synthetic.planted_inference(1)
    assert again.train == world.train and again.pairs == world.pairs


def test_planted_questions_have_their_answers_where_they_say():
    world = synthetic.planted_questions(1)
    found = squad.align([*world.train, *world.test])
    assert (found.misplaced, found.inside, found.lost) == (0, 0, 0)
    for question in found.questions:
        _, _, name, verb, _ = tokenize.english(question.source.question)
        first = question.spans[0].first
        before = [tokenize.table_form(t) for t in question.context[first - 2 : first]]
        assert before == [name, verb]
        assert {t.text.lower() for t in question.context} <= set(world.vectors.words)
    contexts = [{q.context for q in part} for part in (world.train, world.test)]
    assert not contexts[0] & contexts[1]
    assert (len(contexts[0]), len(world.train)) == (200, 400)
    assert len({q.id for q in (*world.train, *world.test)}) == 500


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (synthetic.planted_inference, {"num_things": 1}),
        (synthetic.planted_inference, {"lengths": (2, 5)}),
        (synthetic.planted_questions, {"num_names": 3}),
        (synthetic.planted_questions, {"num_objects": 1}),
    ],
)
def test_more_worlds_that_cannot_be(make, change):
    with pytest.raises(InputError):
        make(**change)


def test_forms_are_told_by_their_company():
    """Counts alone, without any vectors, answer the analogies."""
    world = synthetic.planted_forms()
    words = sorted({word for sentence in world.sentences for word in sentence})
    index = {word: i for i, word in enumerate(words)}
    counts = np.ones((len(words), len(words)))
    for sentence in world.sentences:
        rows = [index[word] for word in sentence]
        for row in rows:
            np.add.at(counts[row], rows, 1)
    logs = np.log(counts / counts.sum(axis=1, keepdims=True))
    logs -= logs.mean(axis=0, keepdims=True)
    rows = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    for name, questions in world.questions.items():
        right = 0
        for question in questions:
            a, b, c, d = (index[word] for word in question)
            scores = rows @ (rows[b] - rows[a] + rows[c])
            scores[[a, b, c]] = -np.inf
            right += int(np.argmax(scores)) == d
        assert right / len(questions) > 0.8, name
    cosines = rows @ rows.T
    found = [cosines[index[pair.first], index[pair.second]] for pair in world.pairs]
    scores = [pair.score for pair in world.pairs]
    assert set(scores) == {0.0, 1.0}
    assert scipy.stats.spearmanr(found, scores).statistic > 0.5
    assert len(world.train) == 300 and len(world.test) == 100
    assert {text.label for text in world.test} == {0, 1}
    assert world.classes.matrix.sum(axis=1).tolist() == [1.0] * 56
    with pytest.raises(InputError, match="num_stems and num_forms of 2 or more"):
        synthetic.planted_forms(num_forms=1)


def test_spelling_decides_the_vectors_of_planted_morphology():
    world = synthetic.planted_morphology(noise=0.0)
    assert set(world.train) | set(world.held_out) == set(world.vectors.words)
    assert not set(world.train) & set(world.held_out)
    for part in (0, 1):
        known = {world.parts[word][part] for word in world.train}
        assert known == {both[part] for both in world.parts.values()}
    for a, b, c, d in world.analogies:
        rows = world.vectors.lookup([a, b, c, d])
        np.testing.assert_allclose(rows[1] - rows[0] + rows[2], rows[3], atol=1e-5)
        assert {a, b, c, d} <= set(world.train)
    for sentence in world.sentences:
        assert all(word.endswith(tag.lower()) for word, tag in sentence)
    again = synthetic.planted_morphology(noise=0.0)
    assert again.sentences == world.sentences and again.pairs == world.pairs
    with pytest.raises(InputError, match="2 to 8 suffixes; got 25 and 9"):
        synthetic.planted_morphology(num_suffixes=9)


def test_senses_are_told_by_cues_out_of_reach():
    world = synthetic.planted_senses(2, sentences=300, distance=4)
    again = synthetic.planted_senses(2, sentences=300, distance=4)
    assert again.sentences == world.sentences
    np.testing.assert_array_equal(again.vectors, world.vectors)
    assert len(world.vectors) == sum(map(len, world.sentences))
    start, senses = 0, collections.defaultdict(set)
    for sentence in world.sentences:
        place = next(i for i, w in enumerate(sentence) if w in world.neighbours)
        assert place == 5  # the cue, then four words that say nothing
        sides = world.neighbours[sentence[place]]
        (side,) = [i for i in range(2) if sentence[place + 1] in sides[i]]
        row = world.vectors[start + place].tobytes()
        senses[sentence[place], side].add(row)
        senses["cue", sentence[place], side].add(sentence[0])
        other = world.vectors[start + place + 1]
        np.testing.assert_array_equal(other, world.types[sentence[place + 1]])
        start += len(sentence)
    # One vector and one cue for each sense, none shared.
    assert len(senses) == 2 * 2 * 4 and {len(own) for own in senses.values()} == {1}
    assert len({next(iter(own)) for own in senses.values()}) == len(senses)
    moved = (world.shuffled != world.vectors).any(axis=1)
    assert 50 < moved.sum() < 250  # about half of the homographs' 300 places
    same = [pair for pair in world.pairs if pair[2] == 10]
    assert len(same) == 4 * 2 * 3 and len(world.pairs) == len(same) + 4 * 9
    with pytest.raises(InputError, match="1 or more"):
        synthetic.planted_senses(beside=0)
