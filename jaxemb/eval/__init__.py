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
        logistic,
        lookup,
        neighbours,
        qvec,
        relational,
        search,
        sentences,
        settings,
        similarity,
        sources,
        suite,
        ties,
        validation,
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
    "logistic",
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
    "sentences",
    "settings",
    "similarity",
    "sources",
    "suite",
    "t_interval",
    "ties",
    "validation",
    "verdict",
    "wilson",
    "word_similarity",
]
