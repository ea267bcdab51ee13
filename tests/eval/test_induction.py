"""Lexicon induction against loops over sorted similarities."""

import numpy as np
import pytest

from jaxemb.data.translations import Translation
from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError
from jaxemb.eval import induction
from jaxemb.spaces import normalize


@pytest.fixture
def spaces():
    rng = np.random.default_rng(0)
    source = rng.normal(size=(60, 5))
    target = source[:50] + 0.6 * rng.normal(size=(50, 5))
    return [normalize.unit(side).astype(np.float32) for side in (source, target)]


@pytest.fixture
def gold():
    rng = np.random.default_rng(1)
    own = np.stack([np.arange(40)] * 2, axis=1)
    others = rng.integers(0, 40, size=(20, 2))
    return np.unique(np.concatenate([own, others]), axis=0)


def by_loop(source, target, gold, style):
    ranks = {}
    for s, t in gold.tolist():
        similarities = sorted(
            (-float(source[s] @ row), j) for j, row in enumerate(target)
        )
        rank = 1 + [j for _, j in similarities].index(t)
        key = (s, t) if style == "pairs" else s
        ranks[key] = min(rank, ranks.get(key, rank))
    return np.array(list(ranks.values()))


@pytest.mark.parametrize("style", ["pairs", "grouped"])
def test_scores_are_those_of_a_loop(spaces, gold, style):
    found = induction.induction(*spaces, gold, style=style, at=(1, 5))
    ranks = by_loop(*spaces, gold, style)
    np.testing.assert_array_equal(np.sort(found.ranks), np.sort(ranks))
    assert found.mrr.mean == pytest.approx(np.mean(1 / ranks))
    assert found.precision[1].mean == pytest.approx(np.mean(ranks == 1))
    assert found.precision[5].mean == pytest.approx(np.mean(ranks <= 5))
    assert found.mrr.low < found.mrr.mean < found.mrr.high
    assert found.covered == found.total == len(ranks)


def test_csls_ranks_by_its_formula(spaces, gold):
    source, target = spaces
    found = induction.induction(source, target, gold, neighbours=10)
    cosines = source @ target.T
    near_source = np.sort(cosines, axis=1)[:, -10:].mean(axis=1)
    near_target = np.sort(cosines, axis=0)[-10:].mean(axis=0)
    scores = 2 * cosines - near_source[:, np.newaxis] - near_target[np.newaxis]
    own = scores[gold[:, 0], gold[:, 1]]
    expected = 1 + (scores[gold[:, 0]] > own[:, np.newaxis]).sum(axis=1)
    np.testing.assert_array_equal(found.ranks, expected)


def test_a_dictionary_and_tables(spaces):
    source, target = (
        WordVectors(tuple(f"{name}{i}" for i in range(len(side))), 3 * side)
        for name, side in zip("st", spaces, strict=True)
    )
    dictionary = [Translation(f"s{i}", f"t{i}") for i in range(45)]
    dictionary += [Translation("s0", "t1"), Translation("s0", "t99")]
    found = induction.lexicon_induction(source, target, dictionary, style="grouped")
    assert (found.covered, found.total) == (45, 45)
    found = induction.lexicon_induction(source, target, dictionary)
    assert (found.covered, found.total) == (46, 47)
    with pytest.raises(InputError, match="none of 1 pairs is in both tables"):
        induction.lexicon_induction(source, target, [Translation("x", "y")])
