"""MC-TACO's scores by hand and beside its authors' figures; accuracy by kind; folds."""

import collections

import numpy as np
import pytest

from jaxemb.data import files, sources
from jaxemb.data.commonsense import read_mctaco
from jaxemb.errors import InputError
from jaxemb.eval import questions


def test_exact_match_and_f1_by_hand():
    # question, gold, predicted
    rows = [
        ("right", 1, 1), ("right", 0, 0),
        ("half", 1, 1), ("half", 1, 0), ("half", 0, 1),  # precision 1/2, recall 1/2
        ("no yes, none said", 0, 0), ("no yes, none said", 0, 0),  # 1 and 1
        ("no yes, one said", 0, 1), ("no yes, one said", 0, 0),  # 0 and 1
        ("yes, none said", 1, 0),  # 1 and 0
        ("all wrong", 1, 0), ("all wrong", 0, 1),  # 0 and 0
    ]  # fmt: skip
    groups, gold, said = zip(*rows, strict=True)
    order = np.random.default_rng(0).permutation(len(rows))
    found = questions.mctaco_em_f1(
        *(np.array(column)[order] for column in (said, gold)),
        [groups[i] for i in order],
    )
    assert found.exact == pytest.approx(2 / 6)
    assert found.f1 == pytest.approx((1 + 0.5 + 1 + 0 + 0 + 0) / 6)
    by_name = dict(zip(found.questions, found.values["f1"], strict=True))
    assert by_name["half"] == pytest.approx(0.5)
    assert by_name["no yes, one said"] == 0


@pytest.mark.data
def test_the_authors_own_predictions_have_the_scores_they_print():
    found = sources.locate("mctaco")
    if found is None:
        pytest.skip("needs mctaco/dataset/test_9442.tsv")
    folder = found.part("test").parent.parent / "experiments"
    rows = read_mctaco(found.part("test"))
    gold, groups = [row.label for row in rows], [row.group for row in rows]
    # Table 3 of Zhou et al. 2019, in per cent.
    for name, exact, f1 in (
        ("bert/bert.norm.output.txt", 42.7, 69.9),
        ("esim/esim.glove.output.txt", 20.9, 50.3),
        ("esim/esim.elmo.output.txt", 26.4, 54.9),
        ("roberta/roberta.output.txt", 43.6, 72.3),
    ):
        path = folder / name
        if not path.exists():
            pytest.skip(f"needs mctaco/experiments/{name}")
        said = [int(line == "yes") for line in files.read_lines(path)]
        scores = questions.mctaco_em_f1(said, gold, groups)
        # One digit is printed, and 50.38 is printed as 50.3: cut and not rounded.
        assert 100 * scores.exact == pytest.approx(exact, abs=0.1), name
        assert 100 * scores.f1 == pytest.approx(f1, abs=0.1), name


def test_accuracy_by_kind():
    found = questions.grouped_accuracy(
        [True, False, True, True], ["commonsense", "text", "text", None]
    )
    assert found == {"all": 0.75, "commonsense": 1.0, "text": 0.5}


def test_folds_keep_groups_together_and_are_even():
    groups = [f"q{i % 13}" for i in range(70)]
    folds = questions.grouped_folds(groups, 5, seed=3)
    of = collections.defaultdict(set)
    for group, fold in zip(groups, folds, strict=True):
        of[group].add(int(fold))
    assert all(len(found) == 1 for found in of.values())
    counts = collections.Counter(next(iter(found)) for found in of.values())
    assert sorted(counts.values()) == [2, 2, 3, 3, 3]
    np.testing.assert_array_equal(folds, questions.grouped_folds(groups, 5, seed=3))
    assert (folds != questions.grouped_folds(groups, 5, seed=4)).any()


def test_mistakes_are_named():
    with pytest.raises(InputError, match="1 predictions of 2 candidates"):
        questions.mctaco_em_f1([1], [1, 0], ["a", "a"])
    with pytest.raises(InputError, match="0 answers of 0 questions"):
        questions.grouped_accuracy([], [])
    with pytest.raises(InputError, match="3 folds of 2 groups"):
        questions.grouped_folds(["a", "b", "a"], 3, seed=0)
