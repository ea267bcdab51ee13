"""Embeddings in JAX: learn, combine, transfer, compress and dissect them."""

import importlib

__version__ = "0.1.0"

_SUBPACKAGES = frozenset(
    [
        "analysis",
        "data",
        "eval",
        "losses",
        "nn",
        "optim",
        "perturb",
        "pretrained",
        "spaces",
        "static",
        "train",
    ]
)


def __getattr__(name: str):
    # Subpackages load on first use: `import jaxemb` costs no jax.
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
