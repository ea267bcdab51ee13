"""How the public checkpoints of each family name config fields and tensors.

A dense kernel is stored as (outputs, inputs), ours is (inputs, outputs); GPT-2's are as
ours, and its queries, keys and values are one tensor.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jaxemb.errors import InputError
from jaxemb.nn.bert import TextConfig

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
_TO_HF = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}

Path = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Slot:
    """One of our parameters and where a checkpoint has it."""

    path: Path
    name: str
    """Of the tensor."""
    turned: bool = False
    """Whether it is stored transposed."""
    part: int | None = None
    """Of a tensor that holds queries, keys and values side by side, which third."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """A family of checkpoints."""

    model_type: str
    """As `config.json` has it."""
    prefix: str
    """Before every name, in checkpoints that hold more than the encoder."""
    architecture: str
    """What transformers calls the encoder."""
    slots: Callable[[TextConfig], Iterator[Slot]]
    read_config: Callable[[Mapping[str, Any]], TextConfig]
    write_config: Callable[[TextConfig], dict[str, Any]]
    ignored: tuple[str, ...] = ()
    """Ends of names that hold nothing trained."""
    masked_lm: tuple[Slot, ...] = ()
    """The parameters of `nn.MaskedLM` above the encoder."""


def _dense(path: Path, name: str) -> Iterator[Slot]:
    yield Slot((*path, "kernel"), f"{name}.weight", turned=True)
    yield Slot((*path, "bias"), f"{name}.bias")


def _norm(path: Path, name: str) -> Iterator[Slot]:
    yield Slot((*path, "scale"), f"{name}.weight")
    yield Slot((*path, "bias"), f"{name}.bias")


def _bert_slots(config: TextConfig) -> Iterator[Slot]:
    tables = {"pieces": "word", "places": "position", "segments": "token_type"}
    for ours, theirs in tables.items():
        if ours != "segments" or config.segments:
            name = f"embeddings.{theirs}_embeddings.weight"
            yield Slot((ours, "embedding"), name)
    yield from _norm(("norm",), "embeddings.LayerNorm")
    for i in range(config.layers):
        layer, ours = f"encoder.layer.{i}", ("blocks", f"layer_{i}")
        for part in ("query", "key", "value"):
            yield from _dense(
                (*ours, "attention", part), f"{layer}.attention.self.{part}"
            )
        attention = f"{layer}.attention.output"
        yield from _dense((*ours, "attention", "output"), f"{attention}.dense")
        yield from _norm((*ours, "attention_norm"), f"{attention}.LayerNorm")
        yield from _dense((*ours, "inner"), f"{layer}.intermediate.dense")
        yield from _dense((*ours, "outer"), f"{layer}.output.dense")
        yield from _norm((*ours, "outer_norm"), f"{layer}.output.LayerNorm")
    if config.pooler:
        yield from _dense(("pool",), "pooler.dense")


def _distilbert_slots(config: TextConfig) -> Iterator[Slot]:
    yield Slot(("pieces", "embedding"), "embeddings.word_embeddings.weight")
    yield Slot(("places", "embedding"), "embeddings.position_embeddings.weight")
    yield from _norm(("norm",), "embeddings.LayerNorm")
    parts = {"query": "q_lin", "key": "k_lin", "value": "v_lin", "output": "out_lin"}
    for i in range(config.layers):
        layer, ours = f"transformer.layer.{i}", ("blocks", f"layer_{i}")
        for part, theirs in parts.items():
            yield from _dense((*ours, "attention", part), f"{layer}.attention.{theirs}")
        yield from _norm((*ours, "attention_norm"), f"{layer}.sa_layer_norm")
        yield from _dense((*ours, "inner"), f"{layer}.ffn.lin1")
        yield from _dense((*ours, "outer"), f"{layer}.ffn.lin2")
        yield from _norm((*ours, "outer_norm"), f"{layer}.output_layer_norm")


def _gpt2_slots(config: TextConfig) -> Iterator[Slot]:
    yield Slot(("pieces", "embedding"), "wte.weight")
    yield Slot(("places", "embedding"), "wpe.weight")
    for i in range(config.layers):
        layer, ours = f"h.{i}", ("blocks", f"layer_{i}")
        for place, part in enumerate(("query", "key", "value")):
            for kind, theirs in (("kernel", "weight"), ("bias", "bias")):
                path = (*ours, "attention", part, kind)
                yield Slot(path, f"{layer}.attn.c_attn.{theirs}", part=place)
        for own, theirs in (
            (("attention", "output"), "attn.c_proj"),
            (("inner",), "mlp.c_fc"),
            (("outer",), "mlp.c_proj"),
        ):
            yield Slot((*ours, *own, "kernel"), f"{layer}.{theirs}.weight")
            yield Slot((*ours, *own, "bias"), f"{layer}.{theirs}.bias")
        yield from _norm((*ours, "attention_norm"), f"{layer}.ln_1")
        yield from _norm((*ours, "outer_norm"), f"{layer}.ln_2")
    yield from _norm(("blocks", "norm"), "ln_f")


def _activation(name: Any) -> Any:
    if name not in _ACTIVATIONS:
        raise InputError(
            f"config.json: activation {name!r}; expected one of "
            f"{', '.join(_ACTIVATIONS)}"
        )
    return _ACTIVATIONS[name]


# Our fields as each family's `config.json` names them; what a file may leave out has
# the default of `TextConfig`, or of the family.
_BERT = {
    "vocab": "vocab_size",
    "dim": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "segments": "type_vocab_size",
    "activation": "hidden_act",
    "dropout_rate": "hidden_dropout_prob",
    "attention_dropout_rate": "attention_probs_dropout_prob",
    "epsilon": "layer_norm_eps",
    "initializer_range": "initializer_range",
}
_DISTILBERT = {
    "vocab": "vocab_size",
    "dim": "dim",
    "layers": "n_layers",
    "heads": "n_heads",
    "inner": "hidden_dim",
    "positions": "max_position_embeddings",
    "activation": "activation",
    "dropout_rate": "dropout",
    "attention_dropout_rate": "attention_dropout",
    "initializer_range": "initializer_range",
}
_GPT2 = {
    "vocab": "vocab_size",
    "dim": "n_embd",
    "layers": "n_layer",
    "heads": "n_head",
    "inner": "n_inner",
    "positions": "n_positions",
    "activation": "activation_function",
    "dropout_rate": "resid_pdrop",
    "attention_dropout_rate": "attn_pdrop",
    "epsilon": "layer_norm_epsilon",
    "initializer_range": "initializer_range",
}
_OPTIONAL = "dropout_rate", "attention_dropout_rate", "epsilon", "initializer_range"


def _read(
    config: Mapping[str, Any], names: Mapping[str, str], **fixed: Any
) -> TextConfig:
    """The fields that a file names, with `fixed` for what its family always has."""
    found = {
        ours: config[theirs]
        for ours, theirs in names.items()
        if theirs in config or ours not in (*_OPTIONAL, *fixed)
    }
    found["activation"] = _activation(found["activation"])
    return TextConfig(**{**fixed, **found})


def _write(config: TextConfig, names: Mapping[str, str]) -> dict[str, Any]:
    fields = {theirs: getattr(config, ours) for ours, theirs in names.items()}
    return {**fields, names["activation"]: _TO_HF[config.activation]}


def _read_bert(config: Mapping[str, Any]) -> TextConfig:
    kind = config.get("position_embedding_type", "absolute")
    if kind != "absolute":
        raise InputError(f"config.json: positions {kind!r}; expected 'absolute'")
    return _read(config, _BERT)


def _write_bert(config: TextConfig) -> dict[str, Any]:
    return {**_write(config, _BERT), "pad_token_id": 0}


def _read_roberta(config: Mapping[str, Any]) -> TextConfig:
    first = (config.get("pad_token_id", 1) or 0) + 1
    return dataclasses.replace(_read_bert(config), first_position=first)


def _write_roberta(config: TextConfig) -> dict[str, Any]:
    return {**_write(config, _BERT), "pad_token_id": config.first_position - 1}


def _read_distilbert(config: Mapping[str, Any]) -> TextConfig:
    return _read(config, _DISTILBERT, segments=0, pooler=False)


def _write_distilbert(config: TextConfig) -> dict[str, Any]:
    fixed = {"sinusoidal_pos_embds": False, "pad_token_id": 0}
    return {**_write(config, _DISTILBERT), **fixed}


def _read_gpt2(config: Mapping[str, Any]) -> TextConfig:
    for field in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
        if config.get(field):
            raise InputError(f"config.json: {field} is not known here; expected false")
    if not config.get("scale_attn_weights", True):
        raise InputError("config.json: scale_attn_weights is false; expected true")
    told = {name: value for name, value in config.items() if value is not None}
    return _read(
        {"n_inner": 4 * told["n_embd"], "activation_function": "gelu_new", **told},
        _GPT2,
        segments=0,
        embedding_norm=False,
        pre_norm=True,
        causal=True,
        pooler=False,
        epsilon=1e-5,
    )


def _write_gpt2(config: TextConfig) -> dict[str, Any]:
    return {**_write(config, _GPT2), "embd_pdrop": config.dropout_rate}


def _masked_lm(transform: str, norm: str, bias: str) -> tuple[Slot, ...]:
    return (
        *_dense(("transform",), transform),
        *_norm(("transform_norm",), norm),
        Slot(("bias",), bias),
    )


_POSITIONS = "embeddings.position_ids"
LAYOUTS = {
    layout.model_type: layout
    for layout in (
        Layout(
            "bert", "bert.", "BertModel", _bert_slots, _read_bert, _write_bert,
            (_POSITIONS,),
            _masked_lm(
                "cls.predictions.transform.dense",
                "cls.predictions.transform.LayerNorm",
                "cls.predictions.bias",
            ),
        ),
        Layout(
            "roberta", "roberta.", "RobertaModel",
            _bert_slots, _read_roberta, _write_roberta,
            (_POSITIONS,),
            _masked_lm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
        ),
        Layout(
            "distilbert", "distilbert.", "DistilBertModel",
            _distilbert_slots, _read_distilbert, _write_distilbert,
            (_POSITIONS,),
            _masked_lm("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
        ),
        Layout(
            "gpt2", "transformer.", "GPT2Model", _gpt2_slots, _read_gpt2, _write_gpt2,
            (".attn.bias", ".attn.masked_bias"),
        ),
    )
}  # fmt: skip


def stored(slot: Slot, tensor: np.ndarray) -> np.ndarray:
    """Our parameter, from the tensor that holds it."""
    if slot.part is not None:
        tensor = np.split(tensor, 3, axis=-1)[slot.part]
    return tensor.T if slot.turned else tensor
