"""Adversarial and virtual adversarial changes of embeddings, as pure functions.

Any model is trained so that has "embeddings in, logits out". Switch it on in its loss:

    import jax, jax.numpy as jnp, optax
    from jaxemb import losses, nn, perturb, train

    model = nn.TextClassifier(classes=2, hidden=8)  # or your own
    objective = perturb.alice(perturb.Ascent(epsilon=1e-2, eta=1e-2, sigma=1e-3))

    def loss(variables, batch, key):
        logits_of = lambda x, drop: model.apply(
            variables, x, batch["mask"], deterministic=False, rngs={"dropout": drop})
        loss_of = lambda logits: losses.softmax_cross_entropy(logits, batch["labels"])
        return perturb.perturbed_loss(
            objective, logits_of, loss_of, batch["vectors"], batch["mask"], key)

    step = jax.jit(train.make_step(loss, optax.adam(1e-2)))

With a teacher (`losses.kd_total`) and pruning (`optim.pruned`), all three at once:

    from jaxemb import optim

    def taught(variables, batch, key):
        logits_of = lambda x, drop: model.apply(
            variables, x, batch["mask"], deterministic=False, rngs={"dropout": drop})
        loss_of = lambda logits: losses.kd_total(
            logits, batch["labels"], batch["teacher"], weight=4.0)
        return perturb.perturbed_loss(
            perturb.fgm(0.1), logits_of, loss_of, batch["vectors"], batch["mask"], key)

    tx = optim.pruned(optax.adam(1e-2), optim.cubic_sparsity(0.5, steps=10, period=2))
    composed = jax.jit(train.make_step(taught, tx))

`plain`, `fgm`, `pgd`, `vat`, `freelb`, `adv`, `smart` and `alice` are objectives; their
parts, and how a change is found, are fields of `Objective` and `Ascent`. Of a model
that looks its embeddings up, do so inside `loss`: the gradient then reaches the table.
The heads of `jaxemb.nn` above a text encoder have `method="embed"` and
`method="logits"`.
"""

from jaxemb.perturb.ascent import Ascent, ascend
from jaxemb.perturb.objective import (
    Objective,
    adv,
    alice,
    fgm,
    freelb,
    perturbed_loss,
    pgd,
    plain,
    smart,
    vat,
)
from jaxemb.perturb.robustness import Attacked, along, attack

__all__ = [
    "Ascent",
    "Attacked",
    "Objective",
    "adv",
    "alice",
    "along",
    "ascend",
    "attack",
    "fgm",
    "freelb",
    "perturbed_loss",
    "pgd",
    "plain",
    "smart",
    "vat",
]
