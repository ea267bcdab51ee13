"""What a checkpoint or a space shows: neighbours, norms, figures, the HTML report."""

from etils import epy

with epy.lazy_api_imports(globals()):  # a table needs no matplotlib
    from jaxemb.analysis import (
        checkpoint,
        delta,
        dimensions,
        figures,
        fuzzy,
        pruning,
        report,
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
    "checkpoint",
    "delta",
    "dimensions",
    "embedding_table",
    "figures",
    "fuzzy",
    "moved_fraction",
    "nearest",
    "neighbour_shift",
    "norm_histogram",
    "norm_ranking",
    "parameters",
    "pruning",
    "report",
    "row_norms",
    "vocabulary",
]
