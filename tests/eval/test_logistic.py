"""Logistic regression at its minimum, against scikit-learn and by its algebra."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from jaxemb.errors import InputError
from jaxemb.eval import logistic

STRENGTHS = 0.25, 8.0


def made(classes, seed=0, rows=60):
    """Features of very different scales and means; two masks."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(rows, 5))
    noise = rng.normal(size=(rows, classes))
    labels = np.argmax(latent @ rng.normal(size=(5, classes)) + noise, axis=1)
    features = latent * np.array([[1.0, 0.1, 3.0, 1.0, 10.0]]) + 2
    masks = np.stack([np.ones(rows, bool), rng.random(rows) < 0.7])
    return features, labels, masks


def sklearns(features, labels, c):
    model = LogisticRegression(
        C=c, solver="newton-cholesky", tol=1e-11, max_iter=1000
    ).fit(features, labels)
    intercepts = model.intercept_
    if len(intercepts) > 1:
        intercepts = intercepts - intercepts.mean()
    return model, model.coef_.T, intercepts


@pytest.mark.parametrize("classes", [2, 4])
def test_every_fit_of_a_batch_is_scikit_learns(classes):
    features, labels, masks = made(classes)
    found = logistic.fit(features, labels, classes, masks, STRENGTHS)
    for i, mask in enumerate(masks):
        for j, c in enumerate(STRENGTHS):
            model, weights, intercepts = sklearns(features[mask], labels[mask], c)
            np.testing.assert_allclose(found.weights[i, j], weights, atol=1e-5)
            np.testing.assert_allclose(found.intercepts[i, j], intercepts, atol=1e-5)
            predicted = found.predict(features)[i, j]
            np.testing.assert_array_equal(predicted, model.predict(features))
    assert found.gradient_norms.max() <= 1e-6


@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_are_short_by_their_definition(classes):
    features, labels, masks = made(classes)
    found = logistic.fit(features, labels, classes, masks, STRENGTHS)
    scores = found.scores(features)
    if classes == 2:
        shares = 1 / (1 + np.exp(-scores))
        wanted = (labels == 1)[:, np.newaxis]
    else:
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = powers / powers.sum(axis=-1, keepdims=True)
        wanted = np.eye(classes)[labels]
    for i, mask in enumerate(masks):
        for j, c in enumerate(STRENGTHS):
            rest = (shares[i, j] - wanted) * mask[:, np.newaxis]
            weights = features.T @ rest + found.weights[i, j] / c
            centred = (features - features.mean(axis=0)).T @ rest
            whole = np.concatenate(
                [centred + found.weights[i, j] / c, rest.sum(axis=0, keepdims=True)]
            )
            assert np.linalg.norm(whole) <= 1.01e-6  # in the solver's coordinates
            shift = np.linalg.norm(features.mean(axis=0))
            assert np.linalg.norm(weights) <= 1.01e-6 * (1 + shift)


def test_the_minimum_is_the_same_from_any_start():
    features, labels, masks = made(4)
    first = logistic.fit(features, labels, 4, masks, STRENGTHS)
    rng = np.random.default_rng(1)
    far = logistic.Fits(
        rng.normal(size=first.weights.shape),
        rng.normal(size=first.intercepts.shape),
        first.gradient_norms,
        0,
    )
    other = logistic.fit(features, labels, 4, masks, STRENGTHS, start=far)
    np.testing.assert_allclose(other.weights, first.weights, atol=1e-5)
    np.testing.assert_array_equal(other.predict(features), first.predict(features))
    near = logistic.fit(features, labels, 4, masks, STRENGTHS, start=first)
    assert near.iterations < first.iterations / 3


@pytest.mark.parametrize("classes", [2, 4])
def test_scaled_features_and_strengths_predict_the_same(classes):
    features, labels, masks = made(classes)
    plain = logistic.fit(features, labels, classes, masks, STRENGTHS)
    smaller = [c / 7**2 for c in STRENGTHS]
    scaled = logistic.fit(7 * features, labels, classes, masks, smaller)
    np.testing.assert_allclose(
        scaled.scores(7 * features), plain.scores(features), atol=1e-4
    )
    np.testing.assert_allclose(7 * scaled.weights, plain.weights, atol=1e-4)


def test_one_component_as_a_vector_or_as_a_number():
    features, labels, masks = made(4)
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))
    direction = rotation[:, 0]
    number = features @ direction[:, np.newaxis]
    vector = number @ direction[np.newaxis]
    scores = [
        logistic.fit(x, labels, 4, masks, STRENGTHS).scores(x) for x in (number, vector)
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)
    turned = logistic.fit(features @ rotation, labels, 4, masks, STRENGTHS)
    plain = logistic.fit(features, labels, 4, masks, STRENGTHS)
    np.testing.assert_allclose(
        turned.scores(features @ rotation), plain.scores(features), atol=1e-5
    )


@pytest.mark.parametrize("classes", [2, 4])
def test_features_one_by_one(classes):
    features, labels, masks = made(classes)
    found = logistic.fit_each(features, labels, classes, masks, STRENGTHS)
    assert len(found) == 5
    for number, alone in enumerate(found):
        column = features[:, number : number + 1]
        expected = logistic.fit(column, labels, classes, masks, STRENGTHS)
        np.testing.assert_allclose(alone.weights, expected.weights, atol=1e-4)
        np.testing.assert_array_equal(alone.predict(column), expected.predict(column))


def test_a_class_that_a_mask_lacks_is_never_predicted():
    features, labels, masks = made(4)
    masks[1] = labels != 2
    found = logistic.fit(features, labels, 4, masks, STRENGTHS)
    assert 2 in found.predict(features)[0]
    assert 2 not in found.predict(features)[1]
    _, weights, _ = sklearns(features[masks[1]], labels[masks[1]], 8.0)
    others = found.weights[1, 1][:, [0, 1, 3]]
    np.testing.assert_allclose(others, weights, atol=1e-4)


def test_a_shared_design_and_wide_numbers_stay_inside():
    features, labels, masks = made(2)
    design = logistic.Design.of(features)
    assert design.rows.shape == (60, 51)
    assert design.rows.dtype == np.float64
    shared = logistic.fit(design, labels, 2, masks, STRENGTHS)
    alone = logistic.fit(features, labels, 2, masks, STRENGTHS)
    np.testing.assert_array_equal(shared.weights, alone.weights)
    assert jax.numpy.zeros(3).dtype == np.float32


def test_what_cannot_be_fitted_is_named():
    features, labels, masks = made(2)
    with pytest.raises(InputError, match="1 classes; expected two"):
        logistic.fit(features, labels, 1)
    with pytest.raises(InputError, match="labels from -1 to .*; expected 0 to 3"):
        logistic.fit(features, labels - 1 + np.eye(60, dtype=int)[0] * 9, 4)
    with pytest.raises(InputError, match="C is 0.0; expected numbers above 0"):
        logistic.fit(features, labels, 2, strengths=(1.0, 0.0))
    with pytest.raises(InputError, match="fit 1 has no rows"):
        logistic.fit(features, labels, 2, masks & np.array([[True], [False]]))
    with pytest.raises(logistic.NotConverged, match="gradient of norm"):
        logistic.fit(features, labels, 2, masks, STRENGTHS, tolerance=1e-30)
