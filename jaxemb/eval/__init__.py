"""Protocols and metrics, each with its coverage and an interval."""

from etils import epy

with epy.lazy_api_imports(globals()):  # word similarity needs no jax
    from jaxemb.eval import (
        analogy,
        categories,
        classification,
        correlation,
        intervals,
        kinds,
        lookup,
        neighbours,
        qvec,
        relational,
        search,
        settings,
        similarity,
        sources,
        spans,
        suite,
        ties,
    )
    from jaxemb.eval.analogy import Analogies, analogies, cumulative
    from jaxemb.eval.categories import Purity, categorisation, k_means, purity
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
        wilson,
    )
    from jaxemb.eval.neighbours import (
        Overlap,
        nearest_neighbours,
        neighbour_overlap,
    )
    from jaxemb.eval.qvec import Qvec, canonical_correlations, compare_qvec
    from jaxemb.eval.relational import RelationalSimilarity, relational_similarity
    from jaxemb.eval.similarity import (
        Similarity,
        SimilarityDifference,
        compare_similarity,
        word_similarity,
    )
    from jaxemb.eval.spans import SpanScores, span_scores

__all__ = [
    "Analogies",
    "Interval",
    "Overlap",
    "Purity",
    "Qvec",
    "Ratio",
    "RelationalSimilarity",
    "Scores",
    "Similarity",
    "SimilarityDifference",
    "SpanScores",
    "accuracy",
    "analogies",
    "analogy",
    "bootstrap",
    "canonical_correlations",
    "categories",
    "categorisation",
    "classification",
    "compare_qvec",
    "compare_similarity",
    "confusion",
    "correlation",
    "cumulative",
    "intervals",
    "k_means",
    "kinds",
    "lookup",
    "macro_f1",
    "nearest_neighbours",
    "neighbour_overlap",
    "neighbours",
    "paired_bootstrap",
    "paired_t",
    "purity",
    "qvec",
    "ratio",
    "relational",
    "relational_similarity",
    "scores",
    "search",
    "settings",
    "similarity",
    "sources",
    "span_scores",
    "spans",
    "suite",
    "t_interval",
    "ties",
    "verdict",
    "wilson",
    "word_similarity",
]
