import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from jaxemb.analysis import figures, vocabulary
from jaxemb.data import pairs as pairs_lib
from jaxemb.data import sources
from jaxemb.data.pairs import WordPair
from jaxemb.data.vectors import WordVectors, read_word_vectors
from jaxemb.eval import similarity

WORDS = tuple(f"w{i}" for i in range(12))
SVG = "{http://www.w3.org/2000/svg}"


def made():
    rng = np.random.default_rng(0)
    vectors = WordVectors(WORDS, rng.normal(size=(12, 4)).astype(np.float32))
    pairs = [WordPair(*map(str, rng.choice(WORDS, 2)), float(i)) for i in range(20)]
    return vectors, pairs


def test_scores_are_those_of_the_first_rows():
    vectors, pairs = made()
    found = vocabulary.similarity_by_size(vectors, pairs, [1, 6, 9, 99], resamples=20)
    assert [point.rows for point in found] == [1, 6, 9, 12]
    for point in found:
        table = vectors.subset(WORDS[: point.rows])
        expected = similarity.word_similarity(table, pairs, resamples=20)
        np.testing.assert_equal(point.score.__dict__, expected.__dict__)
    covered = [point.score.covered for point in found]
    assert covered == sorted(covered) and covered[-1] == 20


def test_sizes_are_spread_over_a_logarithmic_axis():
    assert vocabulary.sizes_up_to(1) == [1]
    assert vocabulary.sizes_up_to(12) == [2, 4, 10, 12]
    assert vocabulary.sizes_up_to(114_642) == [
        *(2000, 4000, 10_000, 20_000, 40_000, 100_000, 114_642)
    ]
    assert vocabulary.sizes_up_to(400_000)[-2:] == [200_000, 400_000]


def test_the_figure_has_a_line_a_set_and_the_published_figure():
    vectors, pairs = made()
    points = vocabulary.similarity_by_size(vectors, pairs, [1, 6, 9, 12], resamples=20)
    figure = vocabulary.score_by_vocabulary(
        {"RG": points, "none": points[:1]}, {"RG": 0.741}
    )
    lines = figure.axes[0].get_lines()
    known = [p for p in points if not np.isnan(p.score.spearman)]
    np.testing.assert_array_equal(lines[0].get_xdata(), [p.rows for p in known])
    values = [p.score.spearman for p in known]
    np.testing.assert_array_equal(lines[0].get_ydata(), values)
    assert list(lines[1].get_ydata()) == [0.741, 0.741] and len(lines) == 2
    root = ElementTree.fromstring(figures.to_svg(figure))
    texts = [node.text for node in root.iter(f"{SVG}text")]
    covered = f"RG ({known[0].score.covered}/20 to 20/20 pairs)"
    assert covered in texts and "most frequent words of the table" in texts
    assert figures.to_svg(vocabulary.score_by_vocabulary({}))


@pytest.mark.data
def test_paper_01_scores_what_few_words_cover():
    glove, lists = sources.locate("glove-100d-subset"), sources.locate("wordsim")
    if glove is None or lists is None:
        pytest.skip("needs glove.6B.100d.subset.txt and wordsim/")
    vectors = read_word_vectors(glove.path, limit=60_000)
    pairs = pairs_lib.read_pairs(lists.part("WS-353-ALL"))
    small, large = vocabulary.similarity_by_size(
        vectors, pairs, [40_000, 60_000], resamples=0
    )
    assert small.score.spearman == pytest.approx(0.555, abs=0.001)  # as printed
    assert small.score.covered == 348 < large.score.covered <= 353
