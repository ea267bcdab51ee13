"""SentEval's protocols, against loops over scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from jaxemb.errors import InputError
from jaxemb.eval import validation


def made(classes, rows=72, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 4))
    noise = rng.normal(size=(rows, classes))
    labels = np.argmax(features[:, :1] * np.arange(classes) + noise, axis=1)
    return features, labels


def fold_of(labels, folds, seed):
    out = np.empty(len(labels), int)
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splits.split(labels, labels)):
        out[test] = number
    return out


def sklearns(features, labels, c):
    model = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-11, max_iter=1000)
    return model.fit(features, labels)


def chosen_by(features, labels, pairs, grid):
    """The C of the highest mean accuracy over (fitted, held) rows."""
    scores = [
        round(
            100
            * np.mean(
                [
                    sklearns(features[a], labels[a], c).score(features[b], labels[b])
                    for a, b in pairs
                ]
            ),
            2,
        )
        for c in grid
    ]
    return grid[int(np.argmax(scores))]


@pytest.mark.parametrize("folds", [2, 5, 10])
@pytest.mark.parametrize("labels", [[3, 1], [0, 1, 2, 2, 2, 1]])
def test_folds_are_scikit_learns(folds, labels):
    rng = np.random.default_rng(folds)
    labels = rng.permutation(np.repeat(labels, 17))
    ours = validation.stratified_folds(labels, folds, 1111)
    np.testing.assert_array_equal(ours, fold_of(labels, folds, 1111))


def test_nested_folds_are_sentevals():
    features, labels = made(2)
    plan = validation.nested(labels, 3, 1111)
    found = validation.cross_validate(features, labels, 2, plan)
    outer = fold_of(labels, 3, 1111)
    for number in range(3):
        train, test = np.flatnonzero(outer != number), outer == number
        inner = fold_of(labels[train], 3, 1111)
        pairs = [(train[inner != i], train[inner == i]) for i in range(3)]
        c = chosen_by(features, labels, pairs, validation.GRID)
        assert found.chosen[number] == c
        model = sklearns(features[train], labels[train], c)
        right = model.predict(features[test]) == labels[test]
        np.testing.assert_array_equal(found.hits[test], right)
        assert found.accuracies[number] == pytest.approx(right.mean())
    assert found.accuracy == pytest.approx(found.hits.mean())
    assert found.gradient_norm <= 1e-6


def test_folds_then_a_test_and_one_split_are_sentevals():
    features, labels = made(3)
    part = np.arange(72) % 3
    test = part == 2
    plan = validation.folds_then_test(labels, test, 3)
    found = validation.cross_validate(features, labels, 3, plan)
    train = np.flatnonzero(~test)
    inner = fold_of(labels[train], 3, 1111)
    pairs = [(train[inner != i], train[inner == i]) for i in range(3)]
    c = chosen_by(features, labels, pairs, validation.WIDE_GRID)
    assert found.chosen == (c,)
    right = sklearns(features[train], labels[train], c).predict(features) == labels
    np.testing.assert_array_equal(found.hits[test], right[test])
    assert np.isnan(found.hits[~test]).all()

    plan = validation.split(part == 0, part == 1, test)
    found = validation.cross_validate(features, labels, 3, plan)
    c = chosen_by(features, labels, [(part == 0, part == 1)], validation.GRID)
    assert found.chosen == (c,)
    model = sklearns(features[part == 0], labels[part == 0], c)
    right = model.predict(features) == labels
    np.testing.assert_array_equal(found.hits[test], right[test])


def test_test_rows_neither_fit_nor_choose():
    features, labels = made(3)
    part = np.arange(72) % 3
    plan = validation.split(part == 0, part == 1, part == 2)
    found = validation.cross_validate(features, labels, 3, plan)
    other = np.where(part == 2, (labels + 1) % 3, labels)
    again = validation.cross_validate(features, other, 3, plan)
    assert again.chosen == found.chosen
    assert not np.any((found.hits == 1) & (again.hits == 1))
    moved = np.where((part == 2)[:, np.newaxis], 100.0, features)
    assert validation.cross_validate(moved, labels, 3, plan).chosen == found.chosen


def test_rotated_parts_keep_groups_together():
    features, labels = made(3)
    groups = [f"g{number // 6}" for number in range(72)]
    plan = validation.rotated(groups, 4)
    tests = np.stack([one.test for one in plan.rounds])
    np.testing.assert_array_equal(tests.sum(axis=0), 1)
    np.testing.assert_array_equal(tests.sum(axis=1), 18)
    for one in plan.rounds:
        sides = [
            {g for g, m in zip(groups, mask, strict=True) if m}
            for mask in (one.final, one.held[0], one.test)
        ]
        assert not (sides[0] & sides[1] or sides[0] & sides[2] or sides[1] & sides[2])
        assert sum(map(len, sides)) == 12
    found = validation.cross_validate(features, labels, 3, plan)
    assert not np.isnan(found.hits).any()
    assert (
        found.chosen[0]
        == validation.cross_validate(
            features, labels, 3, validation.Plan(plan.rounds[:1], plan.grid)
        ).chosen[0]
    )
    each = validation.cross_validate_each(features, labels, 3, plan)
    for number, alone in enumerate(each):
        column = features[:, number : number + 1]
        expected = validation.cross_validate(column, labels, 3, plan)
        assert alone.chosen == expected.chosen
        np.testing.assert_array_equal(alone.hits, expected.hits)


def test_majority_is_of_tested_rows():
    plan = validation.split(*np.eye(3, dtype=bool)[:, [0, 1, 2, 2, 2]])
    assert validation.majority(np.array([0, 0, 1, 1, 2]), plan) == pytest.approx(2 / 3)


def test_bad_plans_are_named():
    with pytest.raises(InputError, match="4 folds of a class of 3 rows"):
        validation.stratified_folds(np.array([0, 0, 0, 1, 1, 1, 1]), 4)
    with pytest.raises(InputError, match="5 parts of 3 groups; expected 3 to 3"):
        validation.rotated(["a", "b", "c"])
