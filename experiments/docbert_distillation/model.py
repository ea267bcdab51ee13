"""The students and baselines: modules, what they read, how they are trained."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from experiments.docbert_distillation.config import Config
from experiments.docbert_distillation.data import Inputs
from jaxemb import losses, optim, perturb
from jaxemb import nn as jnn
from jaxemb.data import batching

LINEAR = "LR", "SVM"
MATRICES = r"(.*/)?(kernel|recurrent)"
"""What is pruned of a student: also how an LSTM's states depend on the last ones."""


def build(
    config: Config, system: str, classes: int, words: int, *, hidden: int | None = None
) -> nn.Module:
    """A student or baseline.

    Args:
      config: its sizes.
      system: its name.
      classes: how many.
      words: of tf-idf.
      hidden: of the LSTM, unless it is the config's.
    """
    settings = config.students
    if system in LINEAR:
        return jnn.TfidfLinear(classes, words)
    if system == "LSTM":
        return jnn.RegLSTM(
            classes,
            hidden or settings.hidden,
            settings.type_dropout,
            settings.weight_drop,
            settings.dropout,
        )
    if system == "KimCNN":
        return jnn.KimCNN(classes, maps=settings.maps, dropout_rate=settings.dropout)
    if system == "XML-CNN":
        return jnn.XMLCNN(
            classes,
            maps=settings.maps,
            features=settings.features,
            dropout_rate=settings.dropout,
        )
    assert system == "HAN", system
    return jnn.HAN(classes, settings.han_hidden)


def columns_of(system: str, part: dict) -> dict:
    """The columns of a part that a system reads, and the labels."""
    names = ("words",)
    if system in LINEAR:
        names = "features", "values"
    elif system == "HAN":
        names = ("sentences",)
    return {name: part[name] for name in (*names, "labels")}


def inputs_of(system: str, batch: batching.Batch, inputs: Inputs) -> dict[str, Any]:
    """What a system's module is called with."""
    if system in LINEAR:
        return {"ids": batch["features"], "weights": batch["values"]}
    ids = batch["sentences" if system == "HAN" else "words"]
    given = {"vectors": inputs.table[ids], "mask": ids > 0}
    return {**given, "ids": ids} if system == "LSTM" else given


def example_of(
    config: Config,
    system: str,
    dim: int,
    length: int = 2,
    sentences: tuple[int, int] | None = None,
) -> dict:
    """The shapes of `inputs_of` one document; HAN's `sentences` unless the config's."""
    shape = jax.ShapeDtypeStruct
    if system in LINEAR:
        lengths = (1, length)
        return {
            "ids": shape(lengths, jnp.int32),
            "weights": shape(lengths, jnp.float32),
        }
    lengths = (1, length)
    if system == "HAN":
        lengths = (1, *(sentences or config.students.sentences))
    given = {
        "vectors": shape((*lengths, dim), jnp.float32),
        "mask": shape(lengths, jnp.bool_),
    }
    return {**given, "ids": shape(lengths, jnp.int32)} if system == "LSTM" else given


def logits(module: nn.Module, variables: Any, inputs: dict, key=None, **more) -> Any:
    """The module's logits; those of training where there is a key."""
    if not isinstance(module, jnn.TfidfLinear):
        more["deterministic"] = key is None
    return module.apply(
        variables, **inputs, **more, rngs={} if key is None else {"dropout": key}
    )


def optimizer(
    config: Config, system: str, *, pruned_over: int = 0
) -> optax.GradientTransformation:
    """Adam; the LSTM's parameters are averaged, the SVM's decay.

    Args:
      config: rates, and how much is pruned.
      system: which.
      pruned_over: steps of the run, if it is pruned. The average is of pruned weights;
        see `params_of` for what it remembers of those that were there before.
    """
    settings = config.students
    if system == "SVM":
        tx = optax.adamw(
            settings.linear_learning_rate, weight_decay=settings.weight_decay
        )
    elif system == "LR":
        tx = optax.adam(settings.linear_learning_rate)
    else:
        tx = optax.adam(settings.learning_rate)
    if pruned_over:
        how = config.composed
        steps = max(1, int(how.gradual * pruned_over))
        schedule = optim.cubic_sparsity(how.sparsity, steps, period=how.period)
        tx = optim.pruned(tx, schedule, where=MATRICES)
    if system == "LSTM":
        tx = optax.chain(tx, optim.parameter_ema(settings.ema))
    return tx


def params_of(params: Any, average: Any | None) -> Any:
    """What a student is tested with: the average, 0 where the parameter is pruned.

    A weight that was removed leaves a trace in the average, which decays and never
    ends; without this no averaged weight would be 0.
    """
    if average is None:
        return params
    return jax.tree.map(lambda p, a: jnp.where(p == 0, 0, a), params, average)


def loss_fn(
    config: Config,
    system: str,
    module: nn.Module,
    direction: str,
    objective: perturb.Objective | None = None,
):
    """Equation 1 over a batch; the SVM's is its hinge.

    With an objective, that of vectors changed as it says.
    """
    settings = config.students
    penalised = system == "LSTM" and (settings.activation or settings.temporal)

    def taught(found, batch):
        return losses.kd_total(
            found,
            batch["labels"],
            batch["teacher"],
            weight=batch["weight"],
            gold=batch["gold"],
            kind="sigmoid" if config.multi_label else "softmax",
            direction=direction,
            temperature=config.temperature,
        )

    def penalty(kept, mask):
        states = kept["intermediates"]["states"][0]
        size, change = losses.activation_penalty(states, mask)
        return settings.activation * size + settings.temporal * change

    def changed_loss(variables, batch, key):
        assert objective is not None
        inputs = batch["inputs"]
        value, terms = perturb.perturbed_loss(
            objective,
            lambda x, drop: logits(module, variables, {**inputs, "vectors": x}, drop),
            lambda found: taught(found, batch),
            inputs["vectors"],
            inputs["mask"],
            key,
        )
        if penalised:  # of the states of unchanged vectors, in a pass of their own
            _, kept = logits(module, variables, inputs, key, mutable="intermediates")
            value = value + penalty(kept, inputs["mask"]).mean()
        return value, terms

    def loss(variables, batch, key):
        inputs = batch["inputs"]
        if penalised:
            found, kept = logits(
                module, variables, inputs, key, mutable="intermediates"
            )
        else:
            found, kept = logits(module, variables, inputs, key), {}
        if system == "SVM":
            labels = batch["labels"]
            if not config.multi_label:
                labels = jax.nn.one_hot(labels, found.shape[-1])
            return losses.one_vs_rest_hinge(found, labels).mean(), {}
        each = taught(found, batch)
        if penalised:
            each = each + penalty(kept, inputs["mask"])
        return each.mean(), {}

    return loss if objective is None else changed_loss
