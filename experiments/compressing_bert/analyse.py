"""What pruning while pretraining does: loss, features, attention, weights."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.common.findings import Findings
from experiments.common.rows import summary_row
from experiments.compressing_bert import published, saving
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.data import World
from experiments.compressing_bert.model import (
    DENSE,
    Pretrainer,
    Removal,
    Trained,
    flattened,
)
from jaxemb import nn
from jaxemb.analysis import figures, pruning

LOSS = "pretraining loss"
COMPONENTS = 10  # whose space is compared
TEXTS = 32  # whose features and attention are looked at
MARGIN = 0.05  # nats that are let go


class Inside(NamedTuple):
    """What a model makes of some texts."""

    features: list[np.ndarray]
    """Of all pieces, layer by layer, the embeddings first."""
    attention: list[np.ndarray]


def study(
    config: Config,
    world: World,
    pretrainer: Pretrainer,
    workdir: Path,
    findings: Findings,
) -> None:
    """Every arm of pretraining beside the dense one."""
    pruned = [Removal("magnitude", p) for p in sorted(config.sparsities)]
    control = [Removal("random", p) for p in sorted(config.random_sparsities)]
    encode = jax.jit(lambda params, ids: _inside(world, params, ids))
    ids = jnp.asarray(world.held_out[:TEXTS])
    found = {removal: pretrainer.held_out(removal) for removal in (*pruned, *control)}
    for removal, losses in found.items():
        findings.rows.append(summary_row(removal.label, LOSS, losses))
    reference: Inside | None = None
    lines: dict[str, list[list[float]]] = {"cosine": [], "attention": []}
    for removal in pruned:
        trained = pretrainer.trained(removal)
        states, attention = jax.device_get(encode(trained.params["encoder"], ids))
        inside = Inside(list(states), list(attention))
        reference = inside if reference is None else reference
        by_layer = _features(removal, inside, reference, findings)
        for name, values in by_layer.items():
            lines[name].append(values)
        if removal.percent:
            _heads(removal, trained, world.encoder.config.heads, findings)
            saving.single_weights(removal, trained.params, workdir, findings)
        else:
            _weights(trained, workdir / "figures", findings)
    findings.shown += [
        LOSS,
        "cosine of features, last layer",
        "principal components shared, last layer",
        "attention moved, mean of layers",
        saving.BYTES,
    ]
    saving.groups(config, world, pretrainer, workdir, findings)
    _claims(found, findings)
    _figures(config, found, lines, workdir / "figures")


def _inside(world: World, encoder, ids):
    module = nn.Bert(world.encoder.config)
    mask = jnp.ones(ids.shape, bool)
    encoded, sown = module.apply(
        {"params": encoder}, ids, mask, deterministic=True, mutable="intermediates"
    )
    blocks = sown["intermediates"]["blocks"]
    attention = [
        blocks[f"layer_{i}"]["attention"]["attention"][0]
        for i in range(world.encoder.config.layers)
    ]
    return [s.reshape(-1, s.shape[-1]) for s in encoded.states], attention


def _features(
    removal: Removal, inside: Inside, dense: Inside, findings: Findings
) -> Mapping[str, list[float]]:
    cosine = pruning.feature_cosine_by_layer(inside.features, dense.features)
    mask = np.ones(inside.attention[0].shape[::2], bool)
    moved = pruning.attention_distance_by_layer(inside.attention, dense.attention, mask)
    entropy = pruning.attention_entropy_by_layer(inside.attention, mask)
    shared = [
        pruning.subspace_overlap(a.astype(np.float64), b.astype(np.float64), COMPONENTS)
        for a, b in zip(inside.features, dense.features, strict=True)
    ]
    top = pruning.variance_in_components(
        inside.features[-1].astype(np.float64), [COMPONENTS]
    )
    for metric, value in (
        ("cosine of features, last layer", cosine[-1]),
        ("principal components shared, last layer", shared[-1]),
        (f"variance in {COMPONENTS} components, last layer (%)", 100 * top[0]),
        ("attention moved, mean of layers", float(np.mean(moved))),
        ("entropy of attention, mean of layers", float(np.mean(entropy))),
    ):
        findings.add(removal.label, metric, [value])
    for layer, values in enumerate(zip(cosine, shared, strict=True)):
        name = f"layer {layer}" if layer else "embeddings"
        findings.add(removal.label, f"cosine of features, {name}", [values[0]])
        findings.add(removal.label, f"principal components shared, {name}", [values[1]])
    for layer, values in enumerate(zip(moved, entropy, strict=True), 1):
        findings.add(removal.label, f"attention moved, layer {layer}", [values[0]])
        findings.add(removal.label, f"entropy of attention, layer {layer}", [values[1]])
    return {"cosine": cosine, "attention": moved}


def _heads(removal: Removal, trained: Trained, heads: int, findings: Findings) -> None:
    """Figure 4, left: how unequally heads lose weights."""
    masks = trained.masks
    by_layer: dict[str, list[tuple[float, float]]] = {}
    for path, mask in masks.items():
        layer, inside, _ = path.partition("/attention/")
        if inside:
            axis = 0 if "/output/" in path else 1
            span = pruning.head_sparsity_range(mask, heads, axis)
            by_layer.setdefault(layer.rpartition("_")[2], []).append(span)
    for layer, spans in by_layer.items():
        low, high = min(s[0] for s in spans), max(s[1] for s in spans)
        where = f"layer {int(layer) + 1} (%)"
        findings.add(removal.label, f"sparsest head, {where}", [100 * high])
        findings.add(removal.label, f"fullest head, {where}", [100 * low])
    every = [span for spans in by_layer.values() for span in spans]
    findings.add(removal.label, "sparsest head (%)", [100 * max(s[1] for s in every)])
    findings.add(removal.label, "fullest head (%)", [100 * min(s[0] for s in every)])
    sparse = pruning.sparsity_by_matrix(masks)
    findings.add(
        removal.label, "sparsity of matrices, lowest (%)", [100 * min(sparse.values())]
    )
    findings.add(
        removal.label, "sparsity of matrices, highest (%)", [100 * max(sparse.values())]
    )


def _weights(trained: Trained, folder: Path, findings: Findings) -> None:
    """Table 3 and Figures 5 and 7, of the dense model."""
    flat = flattened(trained.params)
    moments = {path: pruning.weight_moments(flat[path]) for path in trained.masks}
    for name in ("mean", "deviation", "skewness", "kurtosis"):
        values = [getattr(m, name) for m in moments.values()]
        for which, of in (
            ("lowest", min),
            ("median", statistics.median),
            ("highest", max),
        ):
            findings.add(
                "pruned 0 %", f"{name} of weights, {which} matrix", [of(values)]
            )
    shares = np.arange(0, 100, 10)
    lines = {}
    for path in (p for p in trained.masks if "layer_0" in p or "pieces" in p):
        mass = [
            100 * pruning.pruned_magnitude_mass(flat[path], s / 100) for s in shares
        ]
        name = path.removeprefix("encoder/").removeprefix("blocks/")
        lines[name] = figures.Curve(shares.tolist(), mass)
    title = "Share of all |w| that goes (%)"
    figures.save(
        figures.curves(lines, title, x_label="sparsity (%)"),
        folder / "magnitude-mass.svg",
        "Figure 5: what the smallest weights add up to, by matrix.",
    )
    path = next(p for p in trained.masks if p.endswith("attention/query/kernel"))
    blocks = pruning.weight_heatmap(flat[path].astype(np.float64), 8, 12)
    figures.save(
        pruning.heat_figure(blocks, f"Mean |w| of {path.removeprefix('encoder/')}"),
        folder / "weights.svg",
        "Figure 7: blocks of one matrix, in hundredths of the largest.",
    )


def _claims(found: Mapping[Removal, tuple[float, ...]], findings: Findings) -> None:
    """Of the loss, paired by held-out batch."""

    def lower(claim: str, better: Removal, worse: Removal, margin: float = 0.0) -> None:
        if better in found and worse in found:
            sides = [[-x for x in found[one]] for one in (better, worse)]
            claim += _printed(better, worse, findings)
            findings.beats(claim, *sides, margin=margin, over="held-out batches")

    for percent in (30, 40):
        free = Removal("magnitude", percent)
        lower(f"{percent} % cost less than {MARGIN:g} nats", free, DENSE, MARGIN)
    for percent in (60, 70, 90):
        lower(f"{percent} % cost loss", DENSE, Removal("magnitude", percent))
    for percent in (30, 60, 90):
        lower(
            f"magnitude has a lower loss than random at {percent} %",
            Removal("magnitude", percent),
            Removal("random", percent),
        )


def _printed(better: Removal, worse: Removal, findings: Findings) -> str:
    """The paper's two figures, which are not of the same objective."""
    if not findings.paper:
        return ""
    arms = {"magnitude": "pruned", "random": "random"}
    ends = [published.LOSS[arms[r.criterion]][r.percent] for r in (better, worse)]
    return f" (in the paper, with next sentences: {ends[0]:g} against {ends[1]:g})"


def _figures(
    config: Config,
    found: Mapping[Removal, tuple[float, ...]],
    lines: Mapping[str, list[list[float]]],
    folder: Path,
) -> None:
    curves = {}
    for criterion in ("magnitude", "random"):
        own = [a for a in found if a.criterion == criterion or a == DENSE]
        own.sort(key=lambda arm: arm.percent)
        curves[criterion] = figures.banded(
            [arm.percent for arm in own], [found[arm] for arm in own]
        )
    figures.save(
        figures.curves(curves, "Held-out loss (nats)", x_label="sparsity (%)"),
        folder / "loss.svg",
        "Loss of hidden pieces by sparsity; bands are 95 % over held-out batches.",
    )
    percents = sorted(config.sparsities)
    for name, title, about in (
        (
            "cosine",
            "Cosine with the dense model",
            "Figure 2, right: features by layer.",
        ),
        ("attention", "Attention moved", "Total variation of attention by layer."),
    ):
        first = 0 if name == "cosine" else 1
        by_arm = {
            f"{percent} %": figures.Curve(
                list(range(first, first + len(values))), values
            )
            for percent, values in zip(percents, lines[name], strict=True)
            if percent
        }
        figures.save(
            figures.curves(by_arm, title, x_label="layer"),
            folder / f"{name}-by-layer.svg",
            about,
        )
