"""What a checkpoint or a space shows: neighbours, norms, figures, the HTML report."""

from etils import epy

with epy.lazy_api_imports(globals()):  # a table needs no matplotlib
    from jaxemb.analysis import (
        alpha,
        checkpoint,
        contexts,
        cost,
        delta,
        dimensions,
        figures,
        fuzzy,
        geometry,
        lexicon,
        linear,
        meta,
        pruning,
        reconstruction,
        report,
        tsne,
        vocabulary,
    )
    from jaxemb.analysis.checkpoint import embedding_table, parameters
    from jaxemb.analysis.delta import (
        moved_fraction,
        nearest,
        neighbour_shift,
        norm_histogram,
        norm_ranking,
        row_norms,
    )

__all__ = [
    "alpha",
    "checkpoint",
    "contexts",
    "cost",
    "delta",
    "dimensions",
    "embedding_table",
    "figures",
    "fuzzy",
    "geometry",
    "lexicon",
    "linear",
    "meta",
    "moved_fraction",
    "nearest",
    "neighbour_shift",
    "norm_histogram",
    "norm_ranking",
    "parameters",
    "pruning",
    "reconstruction",
    "report",
    "row_norms",
    "tsne",
    "vocabulary",
]
