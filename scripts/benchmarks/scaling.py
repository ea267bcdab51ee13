"""What each device does as devices are added: operations, memory traffic, exchanges.

    python scripts/benchmarks/scaling.py

The same global batch of three steps, skip-gram, a BiLSTM-CRF and masked language
modelling with MiniLM's shape, is compiled for 1, 2, 4 and 8 virtual devices, by data
parallelism as users get it. The compiler counts what one device does, the body of a
loop once: hence skip-gram has a single block of text and the BiLSTM is unrolled; of the
CRF's recursion one word counts. Nothing is run, so that there is no noise.
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

COUNTS = 1, 2, 4, 8
_FLAG = f"--xla_force_host_platform_device_count={max(COUNTS)}"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Of the three steps."""

    groups: int = 64
    group: int = 16
    words: int = 20_000
    dim: int = 100
    sentences: int = 64
    length: int = 32
    hidden: int = 200
    texts: int = 32
    pieces: int = 128
    layers: int = 6
    heads: int = 12
    width: int = 384
    vocab: int = 30_522


SMALL = Sizes(words=4_000, dim=16, length=6, hidden=32, pieces=16, layers=2, heads=2,
              width=32, vocab=500)  # fmt: skip

Made = tuple[Callable, Any, Any]  # a step, a state, a batch


def measure(sizes: Sizes | None = None, counts: Sequence[int] = COUNTS) -> list[dict]:
    """A row for each step and number of devices; needs as many."""
    import jax

    from jaxemb import train
    from jaxemb.analysis import cost

    rows = []
    for work, (step, state, batch) in made(sizes or Sizes()):
        for count in counts:
            mesh = train.make_mesh(jax.devices()[:count])
            parallel = train.data_parallel(step, mesh)
            lowered = parallel.lower(parallel.place(state), batch)
            found = cost.device_cost(lowered.compile())
            rows.append(
                {
                    "work": work,
                    "devices": count,
                    "flops": found.flops,
                    "bytes": found.bytes,
                    "collectives": len(found.collectives),
                    "exchanged_bytes": sum(c.bytes for c in found.collectives),
                    "kinds": sorted({c.kind for c in found.collectives}),
                }
            )
    return rows


def rows() -> list[dict]:
    """The same, in a process that has eight virtual devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {_FLAG}"
    done = subprocess.run(
        [sys.executable, __file__, "--in-this-process"],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def shown(row: dict) -> dict[str, str]:
    """A row as it is printed."""
    return {
        "work": row["work"],
        "devices": str(row["devices"]),
        "GFLOP a device": f"{row['flops'] / 1e9:.3f}",
        "MB moved a device": f"{row['bytes'] / 1e6:.1f}",
        "exchanges": f"{row['collectives']} {', '.join(row['kinds'])}".strip(),
        "MB exchanged": f"{row['exchanged_bytes'] / 1e6:.2f}",
    }


def made(sizes: Sizes) -> Iterator[tuple[str, Made]]:
    """The steps, one after the other."""
    yield "skip-gram", _skip_gram(sizes)
    yield "BiLSTM-CRF", _tagger(sizes)
    yield "masked LM", _encoder(sizes)


def _skip_gram(sizes: Sizes) -> Made:
    from jaxemb import static
    from jaxemb.data import corpus
    from jaxemb.static.trainer import Prepared

    rng = np.random.default_rng(0)
    text = rng.permutation(sizes.words)
    sentences = [[f"w{i}" for i in row] for row in text.reshape(-1, 20)]
    objective = static.SkipGram(window=5, negatives=5)
    layout = static.Layout(
        chunk=sizes.groups * sizes.group, groups=sizes.groups, group=sizes.group
    )
    training = static.Training(dim=sizes.dim, epochs=1, sample=0.0, layout=layout)
    with tempfile.TemporaryDirectory() as folder:
        built = corpus.build(sentences, folder, min_count=1, progress=False)
        prepared = Prepared(built, objective, training)
        batch = prepared.batches(0)
        assert batch["blocks"].max() == 1
    return static.make_step(objective, training, 10), prepared.state(), batch


def _tagger(sizes: Sizes) -> Made:
    import jax.numpy as jnp
    import optax

    from jaxemb import nn

    module = nn.Tagger(9, sizes.hidden, head="crf", mlp=None, unroll=sizes.length)
    shape = sizes.sentences, sizes.length
    rng = np.random.default_rng(0)
    batch = {
        "vectors": rng.normal(size=(*shape, sizes.dim)).astype(np.float32),
        "tags": rng.integers(0, 9, shape).astype(np.int32),
        "mask": np.ones(shape, bool),
    }

    def loss(variables, batch, key):
        each = module.apply(
            variables, batch["vectors"], batch["tags"], batch["mask"],
            deterministic=False, rngs={"dropout": key}, method="loss",
        )  # fmt: skip
        return jnp.mean(each), {}

    words = batch["vectors"][:1], batch["mask"][:1]
    return _trained(module, words, loss, optax.adam(1e-3), batch)


def _encoder(sizes: Sizes) -> Made:
    import jax.numpy as jnp
    import optax

    from jaxemb import losses, nn

    config = nn.TextConfig(
        vocab=sizes.vocab, dim=sizes.width, layers=sizes.layers, heads=sizes.heads,
        inner=4 * sizes.width, positions=sizes.pieces,
    )  # fmt: skip
    module = nn.MaskedLM(config)
    rng = np.random.default_rng(0)
    ids = rng.integers(1, sizes.vocab, (sizes.texts, sizes.pieces)).astype(np.int32)
    places = np.arange(0, sizes.pieces, 8, dtype=np.int32)
    batch = {"ids": ids, "places": np.tile(places, (sizes.texts, 1))}

    def loss(variables, batch, key):
        logits = module.apply(
            variables, batch["ids"], batch["ids"] > 0, None, batch["places"],
            deterministic=False, rngs={"dropout": key},
        )  # fmt: skip
        hidden = jnp.take_along_axis(batch["ids"], batch["places"], axis=1)
        return losses.softmax_cross_entropy(logits, hidden).mean(), {}

    texts = ids[:1], ids[:1] > 0
    return _trained(module, texts, loss, optax.adamw(1e-4), batch)


def _trained(module, inputs, loss, tx, batch) -> Made:
    import jax

    from jaxemb import train

    init = jax.jit(module.init, static_argnames="deterministic")
    variables = init(jax.random.key(0), *inputs, deterministic=True)
    state = train.State.create(variables, tx, jax.random.key(1))
    return train.make_step(loss, tx), state, batch


if __name__ == "__main__":
    if sys.argv[1:] == ["--in-this-process"]:
        print(json.dumps(measure()))
    else:
        from jaxemb import terminal

        terminal.print_table([shown(row) for row in rows()])
