"""Protocols and metrics, each with its coverage and an interval."""

from etils import epy

with epy.lazy_api_imports(globals()):  # word similarity needs no jax
    from jaxemb.eval import classification, correlation, intervals, similarity, sources
    from jaxemb.eval.classification import (
        Ratio,
        Scores,
        accuracy,
        confusion,
        macro_f1,
        ratio,
        scores,
    )
    from jaxemb.eval.intervals import (
        Interval,
        bootstrap,
        paired_bootstrap,
        paired_t,
        t_interval,
        verdict,
    )
    from jaxemb.eval.similarity import (
        Similarity,
        SimilarityDifference,
        compare_similarity,
        word_similarity,
    )

__all__ = [
    "Interval",
    "Ratio",
    "Scores",
    "Similarity",
    "SimilarityDifference",
    "accuracy",
    "bootstrap",
    "classification",
    "compare_similarity",
    "confusion",
    "correlation",
    "intervals",
    "macro_f1",
    "paired_bootstrap",
    "paired_t",
    "ratio",
    "scores",
    "similarity",
    "sources",
    "t_interval",
    "verdict",
    "word_similarity",
]
