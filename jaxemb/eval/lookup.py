"""How a word of a test finds its row, whatever its case."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Int

from jaxemb.data.vectors import WordVectors
from jaxemb.errors import InputError

Case = Literal["fallback", "exact", "lower", "ignore"]
"""How a word of the test finds its row.

`exact` as written; `fallback` as written, else lower-cased; `lower` lower-cased always;
`ignore` the first row that differs in case only (what gensim does).
"""


class Lookup(NamedTuple):
    """Words of a test, and where a table has them."""

    words: tuple[str, ...]
    forms: tuple[str, ...]  # as the table writes them; the last tried where it has none
    rows: Int[np.ndarray, " words"]  # -1 where the table lacks the word
    zero: Bool[np.ndarray, " words"]  # found, but a row of zeros has no direction
    recased: int  # words found only in another case than written

    @property
    def usable(self) -> Bool[np.ndarray, " words"]:
        """Words with a row that has a direction."""
        return (self.rows >= 0) & ~self.zero

    @property
    def places(self) -> dict[str, int]:
        """Where in `words` each word is."""
        return {word: place for place, word in enumerate(self.words)}


def look_up(vectors: WordVectors, words: Iterable[str], case: Case) -> Lookup:
    """Finds the row of every word, each once and in alphabetical order.

    Raises:
      InputError: for another case, and where a row that was found is not finite.
    """
    names = tuple(sorted(set(words)))
    found = _rows_of(vectors, names, case)
    rows = np.array([row for _, row in found], np.int64)
    known = np.flatnonzero(rows >= 0)
    values = vectors.matrix[rows[known]]
    finite = np.all(np.isfinite(values), axis=1)
    if not np.all(finite):
        bad = names[known[int(np.flatnonzero(~finite)[0])]]
        raise InputError(f"the vector of {bad!r} is not finite; expected numbers")
    zero = np.zeros(len(names), bool)
    zero[known] = ~np.any(values, axis=1)
    forms = tuple(form for form, _ in found)
    recased = sum(
        row >= 0 and form != word
        for word, (form, row) in zip(names, found, strict=True)
    )
    return Lookup(names, forms, rows, zero, recased)


def check_finite(vectors: WordVectors) -> None:
    """Checks every row of a table, for what is computed from all of them.

    Raises:
      InputError: naming the first word whose row is not finite.
    """
    finite = np.isfinite(vectors.norms)
    if not np.all(finite):
        bad = vectors.words[int(np.flatnonzero(~finite)[0])]
        raise InputError(
            f"the vector of {bad!r} is not finite, or too long for float32; expected "
            "numbers"
        )


def forms_looked_up(words: Collection[str], case: Case = "fallback") -> set[str]:
    """Every form that a test may look up, to read only these rows of a large file.

    Not for `case="ignore"`, where any row may match.
    """
    own, lowered = set(words), {word.lower() for word in words}
    return {"exact": own, "lower": lowered, "fallback": own | lowered}[case]


def case_text(case: str, recased: int) -> str:
    """How case was handled, and what that changed, as printed tables have it."""
    return f"{case} ({recased} words)" if recased else case


def first_rows(vectors: WordVectors, count: int | None) -> WordVectors:
    """The table of the first rows, the most frequent words in most files; no subwords.

    Raises:
      InputError: where `count` is less than 1.
    """
    if count is None:
        return vectors
    if count < 1:
        raise InputError(f"first_rows is {count}; expected 1 or more rows")
    if count >= len(vectors):
        return vectors
    return WordVectors(vectors.words[:count], vectors.matrix[:count], unique=True)


def _rows_of(
    vectors: WordVectors, words: Sequence[str], case: Case
) -> list[tuple[str, int]]:
    """The form found and its row, or -1, for each word."""
    index = vectors.index
    if case == "exact":
        return [(word, index.get(word, -1)) for word in words]
    if case == "lower":
        return [(word.lower(), index.get(word.lower(), -1)) for word in words]
    if case == "fallback":
        forms = [word if word in index else word.lower() for word in words]
        return [(form, index.get(form, -1)) for form in forms]
    if case == "ignore":
        rows = [vectors.index_without_case.get(word.upper(), -1) for word in words]
        found = zip(words, rows, strict=True)
        return [(word if r < 0 else vectors.words[r], r) for word, r in found]
    raise InputError(f"case is {case!r}; expected one of {', '.join(get_args(Case))}")
