"""Readers of labelled pairs of sentences: SICK and the MSR paraphrase corpus."""

import functools
from typing import NamedTuple

from jaxemb.data import tokenize
from jaxemb.data.files import Location
from jaxemb.data.text import Tokenize, parse_label, tsv_rows
from jaxemb.errors import InputError

_KIM_CASED = functools.partial(tokenize.kim, lower=False)

# SICK's judgements, numbered as SentEval does.
ENTAILMENT = {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2}


class SentencePair(NamedTuple):
    """Two sentences, their class, and how related people found them."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    label: int
    score: float | None = None


def read_sick(
    path: Location, *, tokenize: Tokenize = tokenize.whitespace
) -> list[SentencePair]:
    """Reads SICK (Marelli et al. 2014): entailment as the class, and relatedness.

    Its sentences have no punctuation, so that white space parts their words.

    Raises:
      InputError: with file and line, also where there is no pair.
    """
    columns = "sentence_A", "sentence_B", "entailment_judgment", "relatedness_score"
    pairs = []
    for number, (first, second, label, score) in tsv_rows(path, columns):
        try:
            related = float(score)
        except ValueError:
            problem = f"expected a score of relatedness, found {score[:40]!r}"
            raise InputError.at(str(path), number, problem) from None
        judged = parse_label(label, path, number, ENTAILMENT)
        pairs.append(SentencePair(tokenize(first), tokenize(second), judged, related))
    return _some(pairs, path)


def read_mrpc(path: Location, *, tokenize: Tokenize = _KIM_CASED) -> list[SentencePair]:
    """Reads the MSR paraphrase corpus (Dolan et al. 2004): 1 for a paraphrase.

    Quotes in it are marks of the text and not of the format. Words are cut by Kim's
    rules and keep their case.

    Raises:
      InputError: with file and line, also where there is no pair.
    """
    columns = "Quality", "#1 String", "#2 String"
    pairs = [
        SentencePair(
            tokenize(first),
            tokenize(second),
            parse_label(label, path, number, {"0": 0, "1": 1}),
        )
        for number, (label, first, second) in tsv_rows(path, columns)
    ]
    return _some(pairs, path)


def _some(pairs: list[SentencePair], path: Location) -> list[SentencePair]:
    if not pairs:
        raise InputError(f"{path}: expected pairs of sentences, found none")
    return pairs
