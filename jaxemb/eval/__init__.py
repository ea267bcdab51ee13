"""Protocols and metrics, each with its coverage and an interval."""

from etils import epy

with epy.lazy_api_imports(globals()):  # word similarity needs no jax
    from jaxemb.eval import (
        analogy,
        categories,
        classification,
        compounds,
        correlation,
        function_words,
        intervals,
        kinds,
        lookup,
        neighbours,
        pair_scores,
        qvec,
        ranked_analogy,
        relational,
        search,
        settings,
        similarity,
        sources,
        squad,
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
    from jaxemb.eval.pair_scores import PairScores, contrast
    from jaxemb.eval.qvec import Qvec, canonical_correlations, compare_qvec
    from jaxemb.eval.ranked_analogy import RankedAnalogies, ranked_analogies
    from jaxemb.eval.relational import RelationalSimilarity, relational_similarity
    from jaxemb.eval.similarity import (
        Similarity,
        SimilarityDifference,
        compare_similarity,
        word_similarity,
    )
    from jaxemb.eval.squad import BestSpan, SquadScores, best_span, squad_em_f1

__all__ = [
    "Analogies",
    "BestSpan",
    "Interval",
    "Overlap",
    "PairScores",
    "Purity",
    "Qvec",
    "RankedAnalogies",
    "Ratio",
    "RelationalSimilarity",
    "Scores",
    "Similarity",
    "SimilarityDifference",
    "SquadScores",
    "accuracy",
    "analogies",
    "analogy",
    "best_span",
    "bootstrap",
    "canonical_correlations",
    "categories",
    "categorisation",
    "classification",
    "compare_qvec",
    "compare_similarity",
    "compounds",
    "confusion",
    "contrast",
    "correlation",
    "cumulative",
    "function_words",
    "intervals",
    "k_means",
    "kinds",
    "lookup",
    "macro_f1",
    "nearest_neighbours",
    "neighbour_overlap",
    "neighbours",
    "pair_scores",
    "paired_bootstrap",
    "paired_t",
    "purity",
    "qvec",
    "ranked_analogies",
    "ranked_analogy",
    "ratio",
    "relational",
    "relational_similarity",
    "scores",
    "search",
    "settings",
    "similarity",
    "sources",
    "squad",
    "squad_em_f1",
    "suite",
    "t_interval",
    "ties",
    "verdict",
    "wilson",
    "word_similarity",
]
