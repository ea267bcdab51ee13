"""Data sets as results name them."""

from jaxemb.data import sources
from jaxemb.train import results


def described(
    found: sources.Found,
    size: int | None = None,
    *,
    name: str | None = None,
    kind: str | None = None,
) -> results.Data:
    """A data set that was found; its size is that of the catalogue unless given."""
    return results.Data(
        name=name or found.data_set.name,
        kind=kind or found.kind,
        source=found.source,
        sha256=found.sha256,
        size=(found.data_set.rows or 0) if size is None else size,
    )


def planted(name: str, size: int) -> results.Data:
    """A world of `jaxemb.data.synthetic`."""
    return results.Data(
        name=name,
        kind="synthetic",
        source="jaxemb.data.synthetic",
        sha256=None,
        size=size,
    )
