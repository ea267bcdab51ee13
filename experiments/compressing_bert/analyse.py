"""What pruning while pretraining does: loss, features, attention, weights, size."""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse as scipy_sparse

from experiments.common.findings import Findings
from experiments.common.rows import summary_row
from experiments.compressing_bert.config import Config
from experiments.compressing_bert.data import World
from experiments.compressing_bert.model import Arm, Pretrainer, Trained, flattened
from jaxemb import nn
from jaxemb.analysis import figures, pruning
from jaxemb.data.sparse import write_compact
from jaxemb.eval import intervals
from jaxemb.train import results

LOSS = "pretraining loss"
COMPONENTS = 10  # whose space is compared
TEXTS = 32  # whose features and attention are looked at
_REPEATS = 7


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
    arms = [Arm("magnitude", p) for p in sorted(config.sparsities)]
    arms += [Arm("random", p) for p in config.side_sparsities]
    encode = jax.jit(lambda params, ids: _inside(world, params, ids))
    ids = jnp.asarray(world.held_out[:TEXTS])
    found: dict[Arm, tuple[float, ...]] = {}
    reference: Inside | None = None
    lines: dict[str, list[list[float]]] = {"cosine": [], "attention": []}
    for arm in arms:
        trained = pretrainer.trained(arm)
        found[arm] = trained.held_out
        findings.rows.append(summary_row(arm.label, LOSS, trained.held_out))
        states, attention = jax.device_get(encode(trained.params["encoder"], ids))
        inside = Inside(list(states), list(attention))
        reference = inside if reference is None else reference
        if arm.criterion == "magnitude":
            by_layer = _features(arm, inside, reference, findings)
            for name, values in by_layer.items():
                lines[name].append(values)
            if arm.percent:
                _heads(arm, trained, world.encoder.config.heads, findings)
                _sizes(arm, trained, workdir, findings)
            else:
                _weights(trained, workdir / "figures", findings)
    findings.shown += [
        LOSS,
        "cosine of features, last layer",
        "principal components shared, last layer",
        "attention moved, mean of layers",
        "bytes on disk (% of dense)",
    ]
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
    arm: Arm, inside: Inside, dense: Inside, findings: Findings
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
        findings.add(arm.label, metric, [value])
    for layer, values in enumerate(zip(cosine, shared, strict=True)):
        name = f"layer {layer}" if layer else "embeddings"
        findings.add(arm.label, f"cosine of features, {name}", [values[0]])
        findings.add(arm.label, f"principal components shared, {name}", [values[1]])
    return {"cosine": cosine, "attention": moved}


def _heads(arm: Arm, trained: Trained, heads: int, findings: Findings) -> None:
    """Figure 4, left: how unequally heads lose weights."""
    spans, sparse = [], pruning.sparsity_by_matrix(trained.masks)
    for path, mask in trained.masks.items():
        if "/attention/" in path:
            axis = 0 if "/output/" in path else 1
            spans.append(pruning.head_sparsity_range(mask, heads, axis))
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    findings.add(arm.label, "sparsest head (%)", [100 * high])
    findings.add(arm.label, "fullest head (%)", [100 * low])
    findings.add(
        arm.label, "sparsity of matrices, lowest (%)", [100 * min(sparse.values())]
    )
    findings.add(
        arm.label, "sparsity of matrices, highest (%)", [100 * max(sparse.values())]
    )


def _weights(trained: Trained, folder: Path, findings: Findings) -> None:
    """Table 3 and Figures 5 and 7, of the dense model."""
    flat = flattened(trained.params)
    moments = {path: pruning.weight_moments(flat[path]) for path in trained.masks}
    deviations = [m.deviation for m in moments.values()]
    findings.add("pruned 0 %", "deviation of weights, lowest", [min(deviations)])
    findings.add("pruned 0 %", "deviation of weights, highest", [max(deviations)])
    beyond = statistics.median(m.kurtosis for m in moments.values())
    findings.add("pruned 0 %", "kurtosis beyond normal, median matrix", [beyond])
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


def _sizes(arm: Arm, trained: Trained, workdir: Path, findings: Findings) -> None:
    """Bytes on disk and milliseconds of one matrix, CSR beside dense."""
    flat = {p: v for p, v in flattened(trained.params).items() if "encoder/" in p}
    path = workdir / "compact" / f"{arm.folder}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_compact(path, flat)
    dense = sum(value.nbytes for value in flat.values())
    findings.add(
        arm.label, "bytes on disk (% of dense)", [100 * path.stat().st_size / dense]
    )
    path.unlink()
    kernel = next(v for p, v in flat.items() if p.endswith("layer_0/inner/kernel"))
    inputs = np.random.default_rng(0).normal(size=(1024, kernel.shape[0]))
    inputs = inputs.astype(np.float32)
    stored = scipy_sparse.csr_array(kernel.T)
    turned = np.ascontiguousarray(inputs.T)
    times = [[], []]
    for _ in range(_REPEATS):
        for place, product in enumerate(
            (lambda: inputs @ kernel, lambda: stored @ turned)
        ):
            start = time.process_time()
            product()
            times[place].append(1e3 * (time.process_time() - start))
    full, csr = (statistics.median(t) for t in times)
    findings.add(arm.label, "CSR product, times the dense one's CPU time", [csr / full])


def _claims(found: Mapping[Arm, tuple[float, ...]], findings: Findings) -> None:
    """Of the loss, paired by held-out batch."""

    def lower(claim: str, better: Arm, worse: Arm, margin: float = 0.0) -> None:
        if better not in found or worse not in found:
            return
        gap = intervals.paired_t(found[worse], found[better])
        printed = findings.paper.get(LOSS, {})
        ends = [printed.get(arm.label) for arm in (better, worse)]
        told = f"; in the paper {ends[0]:g} against {ends[1]:g}" if all(ends) else ""
        findings.claims.append(
            results.Claim(
                claim=claim,
                verdict=intervals.verdict(gap.low + margin, gap.high + margin),
                evidence=f"paired difference {gap.mean:+.3g} [{gap.low:.3g}, "
                f"{gap.high:.3g}] nats, {len(found[better])} held-out batches{told}",
            )
        )

    dense = Arm("magnitude", 0)
    lower("30 % cost less than 0.05 nats", Arm("magnitude", 30), dense, 0.05)
    for percent in (60, 90):
        lower(f"{percent} % cost loss", dense, Arm("magnitude", percent))
    for percent in (30, 60, 90):
        lower(
            f"magnitude has a lower loss than random at {percent} %",
            Arm("magnitude", percent),
            Arm("random", percent),
        )


def _figures(
    config: Config,
    found: Mapping[Arm, tuple[float, ...]],
    lines: Mapping[str, list[list[float]]],
    folder: Path,
) -> None:
    dense = Arm("magnitude", 0)
    curves = {}
    for criterion in ("magnitude", "random"):
        own = [a for a in found if a.criterion == criterion or a == dense]
        own.sort(key=lambda arm: arm.percent)
        curves[criterion] = figures.banded(
            [arm.percent for arm in own], [found[arm] for arm in own]
        )
    figures.save(
        figures.curves(curves, "Held-out loss (nats)", x_label="sparsity (%)"),
        folder / "loss.svg",
        "Loss of hidden pieces by sparsity; bands are 95 % over held-out batches.",
    )
    percents = [p for p in sorted(config.sparsities)]
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
