"""Scores of questions with several answers: MC-TACO's, and accuracy by kind."""

import dataclasses
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from jaxtyping import Int

from jaxemb.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class McTacoScores:
    """Means over questions, in [0, 1], and their values."""

    exact: float
    """The share of questions of which every candidate is judged right."""
    f1: float
    """The mean over questions of the F1 of "yes"."""
    questions: tuple[Hashable, ...]
    """Their groups, in the order of the values."""
    values: Mapping[str, np.ndarray]
    """`exact` and `f1` of every question."""


def mctaco_em_f1(
    predicted: Int[np.ndarray, " rows"] | Sequence[int],
    gold: Int[np.ndarray, " rows"] | Sequence[int],
    groups: Sequence[Hashable],
) -> McTacoScores:
    """Exact match and F1 as MC-TACO's own program counts them (Zhou et al. 2019).

    Of a question, precision is 1 if no candidate is said to be likely, and recall is 1
    if none is; F1 is 0 where both are 0.

    Args:
      predicted: 1 for a candidate that is said to be likely, else 0.
      gold: likewise, as people say.
      groups: the question of each candidate: sentence and question.

    Raises:
      InputError: where the three differ in length, or are empty.
    """
    if not len(predicted) == len(gold) == len(groups) or not len(gold):
        raise InputError(
            f"{len(predicted)} predictions of {len(gold)} candidates in "
            f"{len(groups)} groups; expected as many of each, one at least"
        )
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    exact, f1 = [], []
    for own in rows.values():
        said, right = (np.asarray(x)[own] == 1 for x in (predicted, gold))
        hits = int(np.sum(said & right))
        precision = hits / said.sum() if said.any() else 1.0
        recall = hits / right.sum() if right.any() else 1.0
        both = precision + recall
        exact.append(float(np.array_equal(said, right)))
        f1.append(2 * precision * recall / both if both else 0.0)
    values = {"exact": np.array(exact), "f1": np.array(f1)}
    return McTacoScores(
        exact=float(values["exact"].mean()),
        f1=float(values["f1"].mean()),
        questions=tuple(rows),
        values=values,
    )


def grouped_accuracy(
    hits: Sequence[bool] | np.ndarray, kinds: Sequence[str | None]
) -> dict[str, float]:
    """The share of right answers, `all` and of every kind that questions have.

    MCScript's kinds are `commonsense` and `text`; papers call the latter "others".
    """
    if len(hits) != len(kinds) or not len(hits):
        raise InputError(
            f"{len(hits)} answers of {len(kinds)} questions; expected as many, one at "
            "least"
        )
    right = np.asarray(hits, float)
    found = {"all": float(right.mean())}
    for kind in sorted({kind for kind in kinds if kind is not None}):
        found[kind] = float(right[[k == kind for k in kinds]].mean())
    return found


def grouped_folds(
    groups: Sequence[Hashable], folds: int, seed: int
) -> Int[np.ndarray, " rows"]:
    """The fold of every row, a group's rows in one; groups are dealt at random.

    Folds differ by one group at most.
    """
    distinct = list(dict.fromkeys(groups))
    if not 2 <= folds <= len(distinct):
        raise InputError(
            f"{folds} folds of {len(distinct)} groups; expected 2 to {len(distinct)}"
        )
    order = np.random.default_rng(seed).permutation(len(distinct))
    fold = {distinct[group]: place % folds for place, group in enumerate(order)}
    return np.array([fold[group] for group in groups])
