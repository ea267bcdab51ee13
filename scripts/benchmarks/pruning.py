"""A step of a pruned model beside the same step without pruning, between refreshes.

    python scripts/benchmarks/pruning.py

MiniLM's shape, 16 texts of 64 pieces, hidden pieces found, BERT's Adam. The peer is
ourselves without masks; a ratio of 1 is no cost. Compiling is not counted, and nor are
refreshes, whose time is told beside. Once as pruning is by default, once with removed
weights that may return, as experiments/compressing_bert has it.
"""

import json
import statistics

import numpy as np
from ratios import by_turns, row, seconds

BATCH, LENGTH, PLACES = 16, 64, 10
REPEATS = 7
TARGET = 1 / 1.05


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    import jax

    from experiments.compressing_bert.config import PRUNED
    from jaxemb import optim

    inner = optim.bert_adam(optim.warmup_linear(1e-4, 10, 10_000))
    often = optim.cubic_sparsity(0.6, 10_000, period=1)
    seldom = optim.cubic_sparsity(0.6, 10_000, period=1_000)
    dense = _Program(inner)
    dense()
    rows = []
    for regrow, how in ((False, ""), (True, ", removed weights may return")):
        between, anew = (
            _Program(optim.pruned(inner, schedule, where=PRUNED, regrow=regrow))
            for schedule in (seldom, often)
        )
        between()
        anew()
        pairs = by_turns(between, dense, REPEATS)
        times = [1e3 * statistics.median(p[i] for p in pairs) for i in (0, 1)]
        refresh = 1e3 * statistics.median(seconds(anew) for _ in range(3)) - times[0]
        size = [
            sum(leaf.nbytes for leaf in jax.tree.leaves(tree))
            for tree in (between.state.opt_state.masks, between.state.params)
        ]
        note = (
            f"{times[0]:.0f} ms (dense {times[1]:.0f} ms); masks "
            f"{size[0] / size[1]:.1%} of the parameters; choosing anew {refresh:.0f} ms"
        )
        work = f"a pruned step{how}, MiniLM's shape, {BATCH} texts of {LENGTH} pieces"
        rows.append(row(work, "the same, dense", pairs, TARGET, note))
    return rows


class _Program:
    """Calls that take a step each."""

    def __init__(self, tx):
        import jax
        import jax.numpy as jnp

        from jaxemb import losses, nn, train

        config = nn.TextConfig(dim=384, layers=6, heads=12, inner=1536)
        model = nn.MaskedLM(config)
        rng = np.random.default_rng(0)
        ids = rng.integers(1000, config.vocab, (BATCH, LENGTH)).astype(np.int32)
        places = np.tile(np.arange(0, 6 * PLACES, 6, dtype=np.int32), (BATCH, 1))
        self._batch = {"ids": ids, "places": places}

        def loss(variables, batch, key):
            mask = jnp.ones((BATCH, LENGTH), bool)
            logits = model.apply(
                variables, batch["ids"], mask, None, batch["places"],
                deterministic=False, rngs={"dropout": key},
            )  # fmt: skip
            right = jnp.take_along_axis(batch["ids"], batch["places"], axis=1)
            return losses.softmax_cross_entropy(logits, right).mean(), {}

        variables = jax.jit(model.init, static_argnames="deterministic")(
            jax.random.key(0), ids, ids > 0, deterministic=True
        )
        state = train.State.create(variables, tx, jax.random.key(1))
        # Buffers of its own each: a step consumes them, and zeros may be shared.
        self.state = jax.tree.map(jnp.array, state)
        self._step = jax.jit(train.make_step(loss, tx), donate_argnums=0)

    def __call__(self):
        import jax

        self.state, metrics = self._step(self.state, self._batch)
        jax.block_until_ready(metrics)


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
