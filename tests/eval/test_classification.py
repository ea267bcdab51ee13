import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from jaxemb.eval import classification


def made(n=60, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, classes)).astype(np.float32),
        rng.integers(0, classes, n).astype(np.int32),
        rng.random(n) < 0.7,
    )


def test_accuracy_over_unequal_batches_is_sklearns():
    logits, labels, mask = made()
    total = classification.Ratio(0, 0)
    for part in (slice(0, 7), slice(7, 40), slice(40, 60)):
        total += jax.jit(classification.accuracy)(
            logits[part], labels[part], mask[part]
        )
    expected = metrics.accuracy_score(labels[mask], logits.argmax(-1)[mask])
    assert float(total.value) == pytest.approx(expected)
    assert float(total.count) == mask.sum()
    assert jax.tree.structure(total).num_leaves == 2


def test_counting_does_not_stop_at_two_to_the_24():
    one = classification.accuracy(jnp.array([[1.0, 0.0]]), jnp.array([0]))
    large = classification.Ratio(jnp.int32(2**24), jnp.int32(2**25))
    total = jax.jit(lambda a, b: a + b)(large, one)
    assert (int(total.total), int(total.count)) == (2**24 + 1, 2**25 + 1)
    half = classification.ratio(jnp.array([0.5, 0.25]))
    assert float((large + half).total) == 2**24 and int(half.count) == 2
    assert float(half.value) == 0.375


def test_nothing_counted_is_nan_and_masked_nan_does_not_leak():
    empty = classification.accuracy(
        jnp.zeros((3, 2)), jnp.zeros(3, jnp.int32), jnp.zeros(3, bool)
    )
    assert np.isnan(empty.value)
    values, mask = jnp.array([1.0, jnp.nan]), jnp.array([True, False])
    assert float(classification.ratio(values, mask).value) == 1.0
    assert float(classification.ratio(jnp.array([1.0, 2.0])).value) == 1.5


def test_confusion_and_scores_are_sklearns():
    logits, labels, mask = made(classes=5)
    labels = np.where(labels == 3, 2, labels)  # class 3 never occurs
    predictions = logits.argmax(-1).astype(np.int32)
    counts = jax.jit(classification.confusion, static_argnums=2)(
        predictions, labels, 5, mask
    )
    true, predicted = labels[mask], predictions[mask]
    np.testing.assert_array_equal(
        counts, metrics.confusion_matrix(true, predicted, labels=range(5))
    )
    found = classification.scores(counts)
    expected = metrics.precision_recall_fscore_support(
        true, predicted, labels=range(5), zero_division=0
    )
    for mine, theirs in zip(
        (found.precision, found.recall, found.f1, found.support), expected, strict=True
    ):
        np.testing.assert_allclose(mine, theirs)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(true, predicted))
    assert classification.macro_f1(counts) == pytest.approx(
        metrics.f1_score(
            true, predicted, labels=range(5), average="macro", zero_division=0
        )
    )


def test_confusion_batches_add_and_ignores_ids_out_of_range():
    _, labels, _ = made(classes=3)
    predictions = np.roll(labels, 1)
    parts = [
        classification.confusion(
            jnp.array(predictions[part]), jnp.array(labels[part]), 3
        )
        for part in (slice(0, 25), slice(25, 60))
    ]
    np.testing.assert_array_equal(
        sum(parts), metrics.confusion_matrix(labels, predictions)
    )
    odd = classification.confusion(jnp.array([0, 1, 7]), jnp.array([0, -1, 1]), 3)
    assert int(odd.sum()) == 1 and int(odd[0, 0]) == 1


def test_scores_of_an_empty_matrix_are_nan():
    found = classification.scores(np.zeros((2, 2), np.int64))
    assert np.isnan(found.accuracy) and np.isnan(found.macro_f1)


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_areas_are_sklearns(digits):
    """With few digits many scores are equal."""
    logits, labels, _ = made(n=80, classes=4)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    scores = np.round(p.astype(np.float64), digits)
    for c in range(4):
        expected = metrics.roc_auc_score(labels == c, scores[:, c])
        assert classification.auc(scores[:, c], labels == c) == pytest.approx(expected)
    areas = [metrics.roc_auc_score(labels == c, scores[:, c]) for c in range(4)]
    assert classification.auc_ovr(scores, labels) == pytest.approx(np.mean(areas))
    if digits == 8:
        p = p / p.sum(axis=1, keepdims=True, dtype=np.float64)
        whole = metrics.roc_auc_score(labels, p, multi_class="ovr", average="macro")
        assert classification.auc_ovr(p, labels) == pytest.approx(whole)


def test_areas_of_one_class_or_of_no_number_do_not_exist():
    scores = np.array([0.1, 0.2, 0.3])
    assert np.isnan(classification.auc(scores, np.ones(3, bool)))
    assert np.isnan(
        classification.auc(np.array([0.1, np.nan]), np.array([True, False]))
    )
    both = np.stack([scores, -scores], axis=1)
    assert np.isnan(classification.auc_ovr(both, np.zeros(3, int)))
    assert classification.auc(scores, np.array([False, False, True])) == 1


def test_micro_f1_is_scikit_learns_and_counted_by_hand():
    rng = np.random.default_rng(0)
    gold, found = (rng.random((40, 5)) < p for p in (0.3, 0.4))
    gold[:, 4] = found[:, 4] = False  # a class that is nowhere
    counts = classification.multilabel_counts(found, gold)
    hits = alarms = misses = 0
    for a, b in zip(found.ravel(), gold.ravel(), strict=True):
        hits, alarms, misses = hits + (a & b), alarms + (a & ~b), misses + (b & ~a)
    assert counts.sum(axis=1).tolist() == [hits, alarms, misses]
    wanted = metrics.f1_score(gold, found, average="micro", zero_division=0)
    np.testing.assert_allclose(classification.micro_f1(counts), wanted)
    each = metrics.f1_score(gold, found, average=None, zero_division=0)
    np.testing.assert_allclose(classification.f1_of_classes(counts), each)
    nothing = classification.multilabel_counts(gold[:, 4:], gold[:, 4:])
    assert classification.micro_f1(nothing) == 0


def test_micro_f1_of_one_class_an_example_is_accuracy():
    rng = np.random.default_rng(1)
    labels, found = rng.integers(0, 4, size=(2, 30))
    sets = [x[:, None] == np.arange(4) for x in (found, labels)]
    counts = classification.multilabel_counts(*sets)
    np.testing.assert_allclose(
        classification.micro_f1(counts), np.mean(labels == found)
    )
