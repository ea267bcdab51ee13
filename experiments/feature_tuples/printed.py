"""The tables that the paper prints, and what in them cannot be.

Nothing here is compared with a measured figure: the paper's text, text8, is not at
hand. What is checked is whether the printed figures agree with each other and with the
printed formulas.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from experiments.feature_tuples.config import FITTED
from jaxemb.spaces import fuzzy

# Table 8: Spearman on SimLex-999.
SIMILARITY = {
    20: {"cosine": 0.2478, "KL": 0.2690, "CE": 0.2744},
    50: {"cosine": 0.2916, "KL": 0.2966, "CE": 0.2981},
    100: {"cosine": 0.2960, "KL": 0.3124, "CE": 0.3206},
    200: {"cosine": 0.3259, "KL": 0.3253, "CE": 0.3298},
}

# Table 9, its four columns.
COLUMNS = ("word2vec 50", "word2vec 100", "sets 50", "sets 100")


class Totals(NamedTuple):
    """A row of Table 9: accuracies (%) by column."""

    syntactic: tuple[float, ...]
    semantic: tuple[float, ...]
    overall: tuple[float, ...]


_SEMANTIC = (10.61, 17.34, 23.67, 23.88)
ANALOGIES: Mapping[str, Totals] = {
    name: Totals(syntactic, _SEMANTIC, overall)
    for name, syntactic, overall in (
        ("adjective-adverb", (4.74, 3.23, 7.26, 3.83), (9.92, 15.68, 21.73, 21.52)),
        ("opposite", (4.06, 3.66, 7.61, 4.92), (9.36, 14.73, 20.60, 20.26)),
        ("comparative", (8.86, 12.63, 16.88, 15.39), (10.10, 15.96, 21.67, 21.39)),
        ("superlative", (7.59, 11.30, 14.32, 13.36), (9.54, 15.20, 20.35, 20.15)),
        (
            "present-participle",
            (7.51, 10.96, 14.31, 13.14),
            (9.34, 14.73, 19.84, 19.49),
        ),
        ("nationality", (12.51, 19.07, 21.64, 21.96), (11.51, 18.16, 22.71, 22.97)),
        ("past tense", (11.65, 17.09, 20.43, 19.76), (11.16, 17.21, 21.96, 27.72)),
        ("plural", (11.76, 17.23, 20.53, 19.89), (11.26, 17.28, 21.90, 21.64)),
        ("plural verbs", (11.36, 16.60, 19.88, 19.46), (11.05, 16.91, 21.46, 21.30)),
    )
}

# Sec. 4.4 and what a vocabulary of text8 or GoogleNews allows.
ENTROPIES = {"noble": 6.2765, "the": 6.2934}
VOCABULARIES = {"text8, 200 dimensions": (71_291, 200)}
VOCABULARIES["GoogleNews, 300 dimensions"] = (3_000_000, 300)


# Table 5: of words, of two words' intersection from a word, and the other way round.
DIVERGENCES = {
    "word from word": (6.3105, 6.3040),
    "intersection from word": (1.02923,),
    "word from intersection": (10.60665,),
}
DIMENSIONS = (10, 20, 50, 100, 200, 300)


def even_rows(dim: int) -> dict[str, float]:
    """What sec. 4.4 and Table 5 would hold of even sets that sum to 1.

    Entropies, and cross-entropies with the terms of absent features. Real words are not
    quite even: their entropies are a little lower, their cross-entropies higher.
    """
    word = np.full(dim, 1 / dim)
    both = fuzzy.intersection(word, word)
    of = {
        "word from word": (word, word),
        "intersection from word": (both, word),
        "word from intersection": (word, both),
    }
    found = {k: float(fuzzy.cross_entropy(*v, bernoulli=True)) for k, v in of.items()}
    return {"entropy": float(fuzzy.entropy(word)), **found}


def fitting_dimensions(slack: float = 0.01) -> list[int]:
    """Of how many dimensions even sets come within `slack` of every printed figure."""
    figures = {"entropy": tuple(ENTROPIES.values()), **DIVERGENCES}
    return [
        dim
        for dim in DIMENSIONS
        if all(
            abs(one / even_rows(dim)[name] - 1) < slack
            for name, printed in figures.items()
            for one in printed
        )
    ]


class Impossible(NamedTuple):
    """A printed total that lies outside the two that it is made of."""

    row: str
    column: str
    printed: float
    implied: float
    """What the other columns of the row make of it."""


def impossible_totals(
    table: Mapping[str, Totals] = ANALOGIES, slack: float = 0.02
) -> list[Impossible]:
    """Overall accuracies of Table 9 that no number of questions explains.

    Totals run on: a row is over all sections so far, semantic or syntactic, so that its
    overall accuracy is `s · semantic + (1 - s) · syntactic`, where s is the share of
    semantic questions. s is the same in every column of a row, since the four systems
    know the same words.

    Args:
      table: by section.
      slack: how far rounding may move a total, in points.
    """
    found = []
    for name, row in table.items():
        by_column = list(zip(*row, strict=True))
        for i, (syntactic, semantic, overall) in enumerate(by_column):
            low, high = sorted((syntactic, semantic))
            if low - slack <= overall <= high + slack:
                continue
            rest = [column for j, column in enumerate(by_column) if j != i]
            # Columns whose two parts are far apart tell the share best.
            gaps = [semantic - syntactic for syntactic, semantic, _ in rest]
            parts = [overall - syntactic for syntactic, _, overall in rest]
            weight = sum(g * p for g, p in zip(gaps, parts, strict=True))
            share = weight / sum(g * g for g in gaps)
            implied = share * semantic + (1 - share) * syntactic
            found.append(Impossible(name, COLUMNS[i], overall, round(implied, 2)))
    return found


def notes() -> dict[str, str]:
    """What is printed and cannot be, in one sentence each, and what was done."""
    bounds = ", ".join(
        f"{fuzzy.entropy_bound(*size):.4f} for {name} ({size[0]:,} words)"
        for name, size in VOCABULARIES.items()
    )
    wrong = "; ".join(
        f"{one.row}, {one.column}: {one.printed} is outside its parts, the other "
        f"columns make it {one.implied}"
        for one in impossible_totals()
    )
    return {
        "entropies": f"printed: {ENTROPIES}; under the printed softmax the mean over "
        f"words is at most n h(1/V): {bounds}; measured under every normaliser here, "
        "softmax used",
        "what the figures are of": "sets that sum to 1 over features, compared by "
        "cross-entropy with the terms of absent features: even sets of "
        f"{', '.join(map(str, fitting_dimensions()))} dimensions would have "
        f"{ {k: round(v, 4) for k, v in even_rows(200).items()} }, where Table 5 and "
        f"sec. 4.4 have {DIVERGENCES} and the entropies above. The normaliser "
        f"{FITTED} with Bernoulli measures is that reading, with claims of its own",
        "denominator": "sum of exp(exp(w)) as printed, taken for a slip of exp(w); the "
        "other reading is the normaliser exp-exp",
        "disjoint union": "max(1, min(0, A + B)) as printed is 1 whatever the sets; "
        "min(1, max(0, A + B)) used",
        "KL": "the printed sum lacks the terms of absent features and may be below 0; "
        "used as printed, and beside it the Bernoulli form",
        "running totals": "Table 9 has totals over all sections so far, not accuracies "
        f"of sections; both are given here; {wrong}",
        "inclusion": "A in B is A[i] <= B[i] in sec. 3 and the reverse in sec. 4.2; "
        "sec. 3 used",
    }
