"""Closed-form geometry of word spaces: nothing here is trained by steps over data.

Spaces are matrices whose rows are words. Maps and powers are computed in float64 on the
host; searches over whole vocabularies run on the device.
"""

from etils import epy

with epy.lazy_api_imports(globals()):
    from jaxemb.spaces import (
        align,
        alpha,
        combine,
        components,
        dictionaries,
        ensemble,
        fuzzy,
        geometric,
        manifolds,
        normalize,
        rcsls,
        retrieval,
        selection,
        spectrum,
    )

__all__ = [
    "align",
    "alpha",
    "combine",
    "components",
    "dictionaries",
    "ensemble",
    "fuzzy",
    "geometric",
    "manifolds",
    "normalize",
    "rcsls",
    "retrieval",
    "selection",
    "spectrum",
]
