"""Every way to combine sources: the paper's, its baselines, and what it leaves out."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from experiments.geometric_meta_embeddings.config import Config
from experiments.geometric_meta_embeddings.data import Sources
from jaxemb.errors import InputError
from jaxemb.spaces import align, combine, geometric, normalize
from jaxemb.spaces.geometric import Geometry, Grams


@dataclasses.dataclass(frozen=True, eq=False)
class Learned:
    """A geometry and what it costs."""

    geometry: Geometry
    objective: float
    iterations: int | None = None
    """Of conjugate gradient; None for the closed form."""


def learn(config: Config, equal: list[np.ndarray], c: float) -> Learned:
    """The geometry of sources of one width."""
    grams = Grams.of(equal)
    if config.solver == "closed":
        if len(equal) > 2:
            raise InputError(
                f"--solver closed: for two sources, not {len(equal)}; take riemannian"
            )
        geometry = geometric.closed_form(grams, c)
        return Learned(geometry, geometric.objective(geometry, grams, c))
    start = geometric.start_for(grams, c)
    geometry, end = geometric.riemannian(grams, c, start, most=config.iterations)
    cost = geometric.objective(geometry, grams, c)
    return Learned(geometry, cost, int(end.iterations))


def equal_width(config: Config, sources: Sources) -> list[np.ndarray]:
    """The sources, of one width and, if inputs are, with rows of length 1."""
    equal = combine.same_width(sources.matrices, config.width)
    return [normalize.unit(m) for m in equal] if config.inputs == "unit" else equal


def systems(
    config: Config, sources: Sources, equal: list[np.ndarray], learned: Learned
) -> dict[str, np.ndarray]:
    """System to matrix, in the order of the paper's tables; its own come last."""
    matrices = dict(zip(sources.names, sources.matrices, strict=True))
    matrices["CONC"] = combine.concatenate(sources.matrices)
    matrices["AVG"] = combine.average(equal)
    first, *rest = equal
    turned = [first, *(other @ align.procrustes(other, first) for other in rest)]
    matrices["Procrustes, then AVG"] = combine.average(turned)
    grams = Grams.of(equal)
    identity = Geometry.identity(len(equal), first.shape[1])
    for name, free in (("rotations only", "rotate"), ("metric only", "metric")):
        kept = {"rotate": False, "metric": False, free: True}
        geometry, _ = geometric.riemannian(
            grams, config.c, identity, most=config.iterations, **kept
        )
        matrices[f"Geo-AVG, {name}"] = combine.average(geometry.latents(equal))
    latents = learned.geometry.latents(equal)
    matrices["Geo-CONC"] = combine.concatenate(latents)
    matrices["Geo-AVG"] = combine.average(latents)
    return matrices


def claimed(sources: Sequence[str]) -> list[tuple[str, str]]:
    """What the paper says of systems: the first is better than the second."""
    combined = [("Geo-AVG", "AVG"), ("Geo-CONC", "CONC")]
    return combined + [(geo, s) for geo in ("Geo-AVG", "Geo-CONC") for s in sources]
