import numpy as np
import pytest

from jaxemb.errors import InputError
from jaxemb.eval import function_words

WORDS = ("The", "film", "of", "noble", "rare")
COUNTS = np.array([900, 500, 400, 100, 3])
KNOWN = {"the", "of"}


def test_rankings_count_function_words():
    entropies = np.array([0.3, 0.1, 0.2, 0.2, 0.9])
    found = function_words.ranked(WORDS, entropies, KNOWN, counts=COUNTS, least=100)
    assert found.words == ("The", "of", "noble", "film")  # of equals the more frequent
    assert [found.found(n) for n in (1, 2, 3, 50)] == [1, 2, 2, 2]
    np.testing.assert_array_equal(found.curve(3), [1, 2, 2])
    by_count = function_words.ranked(WORDS, COUNTS, KNOWN, counts=COUNTS, least=3)
    assert by_count.words == WORDS
    assert by_count.found(2) == 1


def test_resamples_are_ranked_anew():
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(40))
    known = words[::3]
    rankings = [
        function_words.ranked(words, rng.normal(size=40), known, least=40)
        for _ in range(2)
    ]
    rows = rng.integers(0, 40, (25, 40))
    numbered = sorted(words)
    for ranking in rankings:
        place = {word: i for i, word in enumerate(ranking.words)}
        for n in (5, 12, 40):
            expected = [
                sum(
                    word in known
                    for word in sorted((numbered[i] for i in row), key=place.get)[:n]
                )
                for row in rows
            ]
            np.testing.assert_array_equal(ranking.resampled(n)(rows), expected)
            whole = ranking.resampled(n)(np.arange(40)[np.newaxis])
            assert whole == ranking.found(n)


def test_without_counts_the_first_rows_are_frequent():
    found = function_words.ranked(WORDS, np.arange(5.0), KNOWN, least=3)
    assert found.words == ("of", "film", "The")


def test_a_threshold_above_all_counts_is_named():
    with pytest.raises(InputError, match="no word occurs 1000 times or more"):
        function_words.ranked(WORDS, COUNTS, KNOWN, counts=COUNTS, least=1000)
