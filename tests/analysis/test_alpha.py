"""Analyses of alpha-embeddings against their definitions in numpy."""

import numpy as np
import pytest
from scipy import special

from jaxemb.analysis import alpha as analysis
from jaxemb.analysis import figures
from jaxemb.spaces import alpha
from jaxemb.spaces.alpha import Limit, Model

VOCAB, DIM = 30, 4
RNG = np.random.default_rng(0)
U, V = RNG.normal(size=(2, VOCAB, DIM))
COUNTS = RNG.integers(1, 50, size=VOCAB)


@pytest.fixture(scope="module")
def model():
    return Model(U, V, alpha.unigram(COUNTS))


def test_sweep_scores_every_member(model):
    first = lambda rows: {"sum": float(rows.sum()), "first": float(rows[0, 0])}
    found = analysis.alpha_sweep(model, [2.0, -3.0, 1.0], first, [Limit(), Limit(3)])
    assert found.alphas == (-3.0, 1.0, 2.0)
    for place, a in enumerate(found.alphas):
        rows = alpha.alpha_embedding(model, a)
        assert found.scores["sum"][place] == pytest.approx(rows.sum())
        assert found.scores["first"][place] == pytest.approx(rows[0, 0])
    limit = alpha.limit_embedding(model, 3)
    assert found.limits["t3"]["first"] == pytest.approx(limit[0, 0])
    assert list(found.limits) == ["t1", "t3"]


def test_fisher_spectrum_is_that_of_a_weighted_covariance(model):
    found = analysis.fisher_spectrum(model)
    covariance = np.cov(V.T, fweights=COUNTS, ddof=0)
    values = np.sort(np.linalg.eigvals(covariance).real)[::-1]
    np.testing.assert_allclose(found.values, values)
    assert found.isotropy == pytest.approx(values.sum() ** 2 / 4 / (values**2).sum())
    even = Model(U, np.tile(np.eye(DIM), (8, 1))[:VOCAB], alpha.uniform(VOCAB))
    assert analysis.fisher_spectrum(even).isotropy < 1
    whole = np.concatenate([np.eye(DIM), -np.eye(DIM)])
    round_ = Model(U, whole, alpha.uniform(2 * DIM))
    assert analysis.fisher_spectrum(round_).isotropy == pytest.approx(1)


def test_clusters_are_words_of_one_context(model):
    ratios = special.softmax(U @ V.T, axis=1) / (COUNTS / COUNTS.sum())
    best = ratios.argmax(axis=1)
    groups = {c: np.flatnonzero(best == c) for c in set(best.tolist())}
    found = analysis.limit_clusters(model)
    assert found.sizes.tolist() == sorted(map(len, groups.values()), reverse=True)
    assert found.sizes.sum() == VOCAB
    for context, size in zip(found.contexts.tolist(), found.sizes, strict=True):
        assert len(groups[context]) == size
    assert found.own == np.mean(best == np.arange(VOCAB))
    alone = sum(len(words) == 1 for words in groups.values())
    assert found.alone == pytest.approx(alone / VOCAB)
    known, _ = alpha.top_contexts(model, 3)
    again = analysis.limit_clusters(model, known)
    np.testing.assert_array_equal(again.sizes, found.sizes)


def test_drift_is_the_cosine_in_the_metric(model):
    start = alpha.alpha_embedding(model, 1.0)
    for metric, matrix in (("I", np.eye(DIM)), ("F", model.fisher)):
        found = analysis.alpha_direction_drift(model, [3.0, 1.0, -4.0], metric)
        assert found.alphas == (-4.0, 1.0, 3.0)
        assert found.mean[1] == pytest.approx(1) and found.low[1] == pytest.approx(1)

        def cosines(rows, matrix=matrix):
            products = np.einsum("wi,ij,wj->w", rows, matrix, start)
            lengths = [np.einsum("wi,ij,wj->w", x, matrix, x) for x in (rows, start)]
            return products / np.sqrt(lengths[0] * lengths[1])

        far = cosines(alpha.alpha_embedding(model, -4.0))
        assert found.mean[0] == pytest.approx(far.mean(), abs=1e-6)
        assert found.low[0] == pytest.approx(np.quantile(far, 0.05), abs=1e-6)
        limit = cosines(alpha.limit_embedding(model))
        assert found.limit == pytest.approx(limit.mean(), abs=1e-6)


def test_figures_name_what_they_show(model):
    lines = {"E-U-ud-I": figures.Curve([-1.0, 1.0], [0.2, 0.3])}
    swept = analysis.sweep_figure(lines, "score", limits={"E-U-ud-I": 0.1, "U": 0.25})
    [axes] = swept.axes
    dotted = {line.get_ydata()[0]: line.get_color() for line in axes.lines[:2]}
    assert dotted == {0.1: figures.PALETTE[0], 0.25: figures.MUTED}
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(named) == ["E-U-ud-I", "U"]
    spectrum = analysis.spectrum_figure({"ud": analysis.fisher_spectrum(model)})
    clusters = analysis.clusters_figure({"ud": analysis.limit_clusters(model)})
    drift = analysis.drift_figure({"F": analysis.alpha_direction_drift(model, [0.0])})
    for figure, word in ((spectrum, "Fisher"), (clusters, "limit"), (drift, "cosine")):
        svg = figures.to_svg(figure)
        assert word in svg and svg == figures.to_svg(figure)
