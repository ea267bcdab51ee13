"""Steps of adversarial tuning beside the plain step: what perturbation costs.

    python scripts/benchmarks/perturbed.py

A classifier of texts of MiniLM's shape, weights drawn; ADV, SMART and ALICE with one
step of ascent. With a forward pass as 1, a backward pass to the embeddings as 1 and
one to the weights too as 2, the plain step is 3, ADV 5, SMART 8 and ALICE 13: 4.33
times the plain one, less what all share (Adam, the table, dropout's masks, which are
the same in all passes). That the perturbed loss is the higher one is looked at before
times are. Compiling is not counted.
"""

import json
import statistics

import numpy as np
from ratios import by_turns, row

BATCH, LENGTH, CLASSES = 32, 128, 2
REPEATS = 3
# How many plain steps a step may cost at most.
MOST = {"ADV": 1.9, "SMART": 2.9, "ALICE": 4.3}


def comparisons() -> list[dict]:
    """The ratios as `scripts/bench` shows them."""
    from jaxemb import perturb

    ascent = perturb.Ascent(epsilon=1e-2, eta=1e-2, sigma=1e-3)
    plain = Step(perturb.plain())
    before = plain.take()
    rows = []
    for name, objective in (
        ("ADV", perturb.adv(ascent)),
        ("SMART", perturb.smart(ascent)),
        ("ALICE", perturb.alice(ascent)),
    ):
        own = Step(objective)
        if own.take() <= before:
            raise AssertionError(f"{name} has no higher loss than the plain one")
        pairs = by_turns(own.take, plain.take, REPEATS)
        times = [1e3 * statistics.median(p[i] for p in pairs) for i in (0, 1)]
        note = (
            f"{times[0]:.0f} ms (plain {times[1]:.0f} ms), {times[0] / times[1]:.2f} ×"
        )
        work = f"a step of {name}, MiniLM's shape, {BATCH} texts of {LENGTH} pieces"
        rows.append(row(work, "a plain step", pairs, 1 / MOST[name], note))
    return rows


class Step:
    """A classifier, and steps of tuning it with an objective."""

    def __init__(self, objective):
        import jax
        import jax.numpy as jnp
        import optax

        from jaxemb import losses, nn, perturb, train

        config = nn.TextConfig(dim=384, layers=6, heads=12, inner=1536)
        head = nn.SequenceClassifier(CLASSES, config)
        rng = np.random.default_rng(0)
        mask = np.arange(LENGTH) < rng.integers(LENGTH // 4, LENGTH + 1, BATCH)[:, None]
        self._fed = {
            "ids": jnp.asarray(rng.integers(1, 30_000, mask.shape), jnp.int32),
            "mask": jnp.asarray(mask),
            "labels": jnp.asarray(rng.integers(0, CLASSES, BATCH)),
        }

        def loss(variables, batch, key):
            def logits_of(x, key):
                return head.apply(
                    *(variables, x, batch["mask"]),
                    deterministic=False,
                    rngs={"dropout": key},
                    method="logits",
                )

            def loss_of(logits):
                return losses.softmax_cross_entropy(logits, batch["labels"])

            embeddings = head.apply(variables, batch["ids"], method="embed")
            return perturb.perturbed_loss(
                objective, logits_of, loss_of, embeddings, batch["mask"], key
            )

        tx = optax.adam(2e-5)
        ids = self._fed["ids"][:1]
        variables = head.init(jax.random.key(0), ids, ids > 0, deterministic=True)
        self._state = train.State.create(variables, tx, jax.random.key(1))
        self._step = jax.jit(train.make_step(loss, tx), donate_argnums=0)

    def take(self) -> float:
        self._state, metrics = self._step(self._state, self._fed)
        return float(metrics["loss"])


if __name__ == "__main__":
    for found in comparisons():
        print(json.dumps(found, indent=1))
