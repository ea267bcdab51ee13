"""What models cost: here, and at the paper's sizes (Table 3)."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.docbert_distillation import model
from experiments.docbert_distillation.config import (
    FLOPS,
    PARAMETERS,
    PRESETS,
    Config,
)
from experiments.docbert_distillation.data import Inputs, Task
from experiments.docbert_distillation.teacher import Teacher
from jaxemb import nn
from jaxemb.analysis import cost

PAPER_TFIDF = 36_308  # words, by which Table 3's LR has 3.3 million parameters
PAPER_WORDS, PAPER_PIECES = 144, 176  # of a mean Reuters wire; pieces: here counted
PAPER_DIM, PAPER_CLASSES = 300, 90


class Cost(NamedTuple):
    """Of one document's inference, embeddings left out."""

    parameters: int
    flops: float
    seconds: float | None = None


def of_student(
    config: Config,
    system: str,
    *,
    classes: int,
    words: int,
    dim: int,
    length: int,
    sentences: tuple[int, int] | None = None,
    repeats: int = 0,
) -> Cost:
    """Counts, and where `repeats` are asked for measures, a student's cost.

    Args:
      config: its sizes.
      system: its name.
      classes: how many.
      words: of tf-idf, all of which a dense program would multiply.
      dim: of word vectors.
      length: of a document: words, or different words of tf-idf.
      sentences: for HAN, how many there are, and the words of each; the most that it
        reads unless given.
      repeats: calls to time.
    """
    module = model.build(config, system, classes, words)
    example = model.example_of(config, system, dim, length, sentences)
    variables = _shapes(system, module, example)
    seconds = None
    if repeats:
        filled = jax.tree.map(_filled, (variables, example))
        call = jax.jit(lambda v, given: model.logits(module, v, given))
        seconds = cost.seconds_of(call, *filled, repeats=repeats)
    return Cost(
        cost.count_params(variables),
        _flops(config, system, module, variables, dim, length, sentences),
        seconds,
    )


def width_parameters(config: Config, hidden: int, *, classes: int, dim: int) -> int:
    """Of an LSTM of another width."""
    module = model.build(config, "LSTM", classes, 1, hidden=hidden)
    example = model.example_of(config, "LSTM", dim)
    return cost.count_params(_shapes("LSTM", module, example))


def _shapes(system: str, module, example: dict) -> dict:
    more = {} if system in model.LINEAR else {"deterministic": True}
    init = functools.partial(module.init, **more)
    return {"params": jax.eval_shape(init, jax.random.key(0), **example)["params"]}


def _flops(config, system: str, module, variables, dim: int, length: int, sentences):
    def counted(length: int) -> float:
        own = module
        if system in ("LSTM", "HAN"):  # the compiler counts a loop's body once
            steps = max(sentences or config.students.sentences)
            unroll = length if system == "LSTM" else steps
            own = dataclasses.replace(module, unroll=unroll)
        example = model.example_of(config, system, dim, length, sentences)
        return cost.count_flops(
            lambda v, given: model.logits(own, v, given), variables, example
        )

    if system == "LSTM":
        return cost.flops_of_length(counted, length)
    if system in model.LINEAR:
        # As a product with all words, which is how the paper counts; gathering the
        # words that are there takes `counted(length)`, a few hundredths of it.
        kernel = variables["params"]["kernel"].shape
        return cost.count_flops(
            lambda x, w: x @ w,
            jax.ShapeDtypeStruct((1, kernel[0]), jnp.float32),
            jax.ShapeDtypeStruct(kernel, jnp.float32),
        )
    return counted(length)


def of_encoder(
    shape: nn.TextConfig,
    classes: int,
    length: int,
    repeats: int = 0,
    *,
    tables: bool = False,
) -> Cost:
    """Of a tuned encoder.

    Args:
      shape: its sizes.
      classes: how many.
      length: pieces of a document.
      repeats: calls to time.
      tables: whether those of pieces, places and segments count among its parameters.
    """
    module = nn.SequenceClassifier(classes, shape)
    ids = jax.ShapeDtypeStruct((1, length), jnp.int32)
    mask = jax.ShapeDtypeStruct((1, length), jnp.bool_)
    variables = jax.eval_shape(
        functools.partial(module.init, deterministic=True), jax.random.key(0), ids, mask
    )

    def forward(variables, ids, mask):
        return module.apply(variables, ids, mask, deterministic=True)

    seconds = None
    if repeats:
        filled = jax.tree.map(_filled, (variables, ids, mask))
        seconds = cost.seconds_of(jax.jit(forward), *filled, repeats=repeats)
    params = cost.count_params(variables)
    if not tables:
        encoder = variables["params"]["encoder"]
        named = ("pieces", "places", "segments")
        params -= cost.count_params([encoder[n] for n in named if n in encoder])
    return Cost(params, cost.count_flops(forward, variables, ids, mask), seconds)


def _filled(shape: jax.ShapeDtypeStruct) -> jax.Array:
    return jnp.ones(shape.shape, shape.dtype)


def here(
    config: Config, task: Task, inputs: Inputs, teacher: Teacher
) -> dict[str, Cost]:
    """Of every system of a run, at the mean length of its test documents."""
    columns = inputs.columns["test"]
    lengths = {
        name: max(4, round(float(np.mean(columns[name].lengths))))
        for name in ("words", "features")
    }
    read = columns["sentences"] > 0
    there = read.any(axis=2)
    mean_sentences = (
        max(1, round(float(there.sum(axis=1).mean()))),
        max(1, round(float(read.sum(axis=2)[there].mean()))),
    )
    found = {}
    for system in (*config.systems, *config.baselines):
        kind = "features" if system in model.LINEAR else "words"
        found[system] = of_student(
            config,
            system,
            classes=task.classes,
            words=len(inputs.tfidf.words),
            dim=inputs.table.shape[1],
            length=lengths[kind],
            sentences=mean_sentences,
            repeats=config.repeats,
        )
    found["teacher"] = of_encoder(
        teacher.module.config,
        task.classes,
        round(teacher.mean_pieces()),
        config.repeats,
    )
    return found


def of_paper() -> dict[str, Cost]:
    """Table 3's models at its sizes, counted as it counts them.

    Its 3.3 million of the LSTM are without the output layer (with it they would be
    3.4), those of KimCNN and LR with it.
    """
    config = PRESETS["reuters-paper"][1]
    sizes = {"classes": PAPER_CLASSES, "words": PAPER_TFIDF, "dim": PAPER_DIM}
    found = {
        system: of_student(config, system, **sizes, length=PAPER_WORDS)
        for system in ("LSTM", "KimCNN", "LR")
    }
    module = model.build(config, "LSTM", PAPER_CLASSES, PAPER_TFIDF)
    shapes = _shapes("LSTM", module, model.example_of(config, "LSTM", PAPER_DIM))
    encoder = cost.count_params(shapes["params"]["encoder"])
    found["LSTM"] = found["LSTM"]._replace(parameters=encoder)
    # Of BERT the paper counts the tables, too: 110 million.
    found["BERT-base"] = of_encoder(
        nn.TextConfig(), PAPER_CLASSES, PAPER_PIECES, tables=True
    )
    return found


def published(system: str) -> tuple[float, float]:
    """Table 3: parameters and operations, in millions."""
    return PARAMETERS[system], FLOPS[system]


RATIOS = {"LR": 4620.0, "KimCNN": 1150.0, "LSTM": 40.0, "BERT-base": 1.0}
"""Table 3: of BERT base's operations to a model's own."""
