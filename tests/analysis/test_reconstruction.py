import numpy as np

from jaxemb.analysis import figures, reconstruction
from jaxemb.losses import distances

FIVE = {
    "D1": distances.d1,
    "D√2": distances.d_sqrt2,
    "D2": distances.d2,
    "D∞": distances.d_inf,
    "Dcos": distances.d_cos,
}


def test_contours_go_through_the_same_point():
    figure = reconstruction.distance_contours(FIVE, target=(1.0, 0.6), radius=0.5)
    [axes] = figure.axes
    assert len(axes.collections) == 5
    for name, contours in zip(FIVE, axes.collections, strict=True):
        points = np.concatenate([path.vertices for path in contours.get_paths()])
        gap = np.abs(points - np.array([1.5, 0.6])).max(axis=1).min()
        assert gap < 0.02, name
        if name == "D∞":  # a square
            sides = np.abs(points - np.array([1.0, 0.6])).max(axis=1)
            np.testing.assert_allclose(sides, 0.5, atol=0.02)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == list(FIVE)
    assert "<svg" in figures.to_svg(figure)


def test_what_a_model_stores():
    params = {
        "words": {"table": np.zeros((7, 2))},
        "char": {"characters": {"embedding": np.zeros((5, 3))}, "kernel": np.ones(4)},
    }
    assert reconstruction.stored(params, ("table", "embedding")) == (12, 33)
    assert reconstruction.stored(params, ("embedding",)) == (5, 33)
