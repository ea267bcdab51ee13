"""Leave one list out: what is supervised by is decided by loops over sets."""

import numpy as np
import pytest

from jaxemb.data.pairs import WordPair
from jaxemb.errors import InputError
from jaxemb.eval import holdout

LISTS = {
    "a": [WordPair("Cat", "dog", 0.0), WordPair("sun", "moon", 4.0)],
    "b": [WordPair("dog", "cat", 10.0), WordPair("cat", "car", 30.0)],
    "c": [WordPair("sea", "sky", 1.0), WordPair("moon", "tide", 2.0)],
}


def by_loop(control, held):
    """Pairs of other lists that stay, from the definition."""
    own = {frozenset((a.lower(), b.lower())) for a, b, _ in LISTS[held]}
    words = {w for pair in own for w in pair}
    kept = []
    for name, rows in LISTS.items():
        for a, b, _ in rows:
            pair = {a.lower(), b.lower()}
            leaks = {
                "pairs": frozenset(pair) in own,
                "leaky": False,
                "words": bool(pair & words),
            }[control]
            kept.append(name != held and not leaks)
    return np.array(kept)


@pytest.mark.parametrize("control", ["pairs", "leaky", "words"])
@pytest.mark.parametrize("validation", [0.0, 0.5])
def test_supervision(control, validation):
    pool = holdout.Pool.of_lists(LISTS)
    found = holdout.leave_one_out(pool, control, validation=validation, seed=3)
    assert [one.name for one in found] == list(LISTS)
    for one in found:
        kept = by_loop(control, one.name)
        np.testing.assert_array_equal(one.train | one.dev, kept)
        assert not np.any(one.train & one.dev)
        assert not np.any(one.test & kept)
        assert one.removed == 6 - one.test.sum() - kept.sum()
    if not validation:
        assert not any(one.dev.any() for one in found)


def test_a_pair_of_two_lists_is_on_one_side():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    rows = [WordPair(*rng.choice(words, 2, replace=False), s) for s in rng.random(90)]
    turned = [WordPair(b, a, s) for a, b, s in rows]
    pool = holdout.Pool.of_lists({"x": rows, "y": turned, "z": LISTS["a"]})
    last = holdout.leave_one_out(pool, validation=0.3)[2]
    np.testing.assert_array_equal(last.dev[:90], last.dev[90:180])
    assert 0.1 < last.dev[:90].mean() < 0.5


def test_scores_and_rows():
    pool = holdout.Pool.of_lists(LISTS)
    np.testing.assert_allclose(pool.scores, [0, 1, 0, 1, 0, 1])
    assert pool.words == (
        "Cat",
        "dog",
        "sun",
        "moon",
        "cat",
        "car",
        "sea",
        "sky",
        "tide",
    )
    rows = pool.rows(["dog", "cat"])
    np.testing.assert_array_equal(rows[[0, 2]], [[-1, 0], [0, 1]])


def test_shuffled_scores_stay_in_their_list():
    lists = {"x": [WordPair("a", "b", float(i)) for i in range(50)], **LISTS}
    pool = holdout.Pool.of_lists(lists)
    dealt = pool.shuffled(1)
    assert not np.array_equal(dealt[:50], pool.scores[:50])
    for number in range(4):
        own = pool.of == number
        np.testing.assert_allclose(np.sort(dealt[own]), np.sort(pool.scores[own]))


def test_mistakes():
    with pytest.raises(InputError, match="expected scores that differ"):
        holdout.Pool.of_lists({"x": [WordPair("a", "b", 1.0)]})
    pool = holdout.Pool.of_lists(LISTS)
    with pytest.raises(InputError, match="control is 'all'"):
        holdout.leave_one_out.__wrapped__(pool, "all")
    with pytest.raises(InputError, match="validation is 1"):
        holdout.leave_one_out(pool, validation=1.0)
