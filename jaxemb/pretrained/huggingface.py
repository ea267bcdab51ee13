"""Folders of pretrained weights as the transformers library has them, without it.

A folder, or an archive of one, holds `config.json`, `model.safetensors` (or several
shards and their index) and the tokenizer's files. Read with numpy and safetensors
alone: pickled weights are refused.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import Path as ZipPath

import numpy as np
from flax import traverse_util
from safetensors import numpy as safetensors

from jaxemb.data import files
from jaxemb.data.tensors import read_tensors
from jaxemb.errors import InputError
from jaxemb.nn.bert import GPT2, Bert, TextConfig, TextEncoder
from jaxemb.pretrained.layouts import LAYOUTS, Layout, Slot, stored

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
TOKENIZER = "tokenizer.json"
# Heads above an encoder, by the beginnings of their names; `rest` keeps them.
_HEADS = ("cls.", "lm_head.", "classifier.", "qa_outputs.", "score.", "pre_classifier.")
_HEADS += ("vocab_", "multiple_choice_head.")


@dataclasses.dataclass(frozen=True, eq=False)
class Pretrained:
    """An encoder's weights and what is needed to use them."""

    config: TextConfig
    model_type: str
    """The family, as `config.json` names it: bert, roberta, distilbert or gpt2."""
    params: Any
    """For `module().apply({"params": params}, …)`; numpy arrays in float32."""
    tokenizer: bytes | None = None
    """What `tokenizer.json` holds, if there is one."""
    rest: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Tensors of heads above the encoder, by the names that the file gives them."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """All of `config.json`."""

    def module(self, **settings: Any) -> TextEncoder:
        """The encoder; `settings` are its other fields, such as `dtype`."""
        kind = GPT2 if self.model_type == "gpt2" else Bert
        return kind(self.config, **settings)


def load_hf(place: files.Location) -> Pretrained:
    """Reads a folder, one inside a zip or wheel (`file.whl/inner/folder`), or a zip.

    Tensors may be float32, float16 or bfloat16, and become float32.

    Raises:
      InputError: where a file is missing, or in one sentence naming every tensor that
        is unknown, missing or of another shape than `config.json` says.
    """
    folder = _folder(place)
    settings = _json(folder / CONFIG)
    kind = settings.get("model_type")
    if kind not in LAYOUTS:
        raise InputError(
            f"{folder / CONFIG}: model_type {kind!r}; expected one of "
            f"{', '.join(LAYOUTS)}"
        )
    layout = LAYOUTS[kind]
    try:
        config = layout.read_config(settings)
    except KeyError as error:
        raise InputError(f"{folder / CONFIG}: lacks {error}") from error
    tensors = _tensors(folder)
    named = _without_prefix(tensors, layout)
    if config.pooler and "pooler.dense.weight" not in named:
        config = dataclasses.replace(config, pooler=False)
    params, rest = _assign(named, layout, config, str(folder))
    tokenizer = folder / TOKENIZER
    return Pretrained(
        config,
        kind,
        params,
        tokenizer.read_bytes() if tokenizer.is_file() else None,
        rest,
        settings,
    )


def save_hf(folder: str | Path, pretrained: Pretrained) -> None:
    """Writes a folder that `load_hf` and the transformers library read.

    The weights in `pretrained.params`, in float32, with the heads in `rest`; so after
    fine-tuning: `save_hf(folder, dataclasses.replace(pretrained, params=params))`.
    """
    folder = Path(folder)
    if pretrained.config.kept_heads:
        raise InputError("save_hf: heads are removed; save before `without_heads`.")
    layout = LAYOUTS[pretrained.model_type]
    flat = traverse_util.flatten_dict(pretrained.params)
    tensors: dict[str, list[tuple[int, np.ndarray]]] = {}
    for slot in layout.slots(pretrained.config):
        if slot.path not in flat:
            raise InputError(f"save_hf: no parameter {'/'.join(slot.path)}")
        value = np.asarray(flat.pop(slot.path), np.float32)
        part = (slot.part or 0, value.T if slot.turned else value)
        tensors.setdefault(slot.name, []).append(part)
    if flat:
        names = ", ".join("/".join(path) for path in flat)
        raise InputError(f"save_hf: parameters that {layout.model_type} lacks: {names}")
    prefix = layout.prefix if pretrained.rest else ""
    arrays = {
        prefix + name: np.ascontiguousarray(
            np.concatenate(
                [value for _, value in sorted(parts, key=lambda p: p[0])], -1
            )
        )
        for name, parts in tensors.items()
    }
    for name, value in pretrained.rest.items():
        arrays[name] = np.ascontiguousarray(value)
    settings = {
        "architectures": [layout.architecture],
        **pretrained.settings,
        **layout.write_config(pretrained.config),
        "model_type": layout.model_type,
    }
    folder.mkdir(parents=True, exist_ok=True)
    with files.write_atomically(folder / WEIGHTS) as part:
        part.write_bytes(safetensors.save(arrays, metadata={"format": "pt"}))
    with files.write_atomically(folder / CONFIG) as part:
        part.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
    if pretrained.tokenizer is not None:
        with files.write_atomically(folder / TOKENIZER) as part:
            part.write_bytes(pretrained.tokenizer)


def masked_lm_params(pretrained: Pretrained) -> Any:
    """The parameters of `nn.MaskedLM`, where the weights came with such a head.

    Raises:
      InputError: naming the tensors of the head that there are not.
    """
    slots = LAYOUTS[pretrained.model_type].masked_lm
    missing = [slot.name for slot in slots if slot.name not in pretrained.rest]
    if missing or not slots:
        raise InputError(
            f"{pretrained.model_type} weights without a masked language model: no "
            f"{', '.join(missing) or 'such head'}"
        )
    flat = {slot.path: stored(slot, pretrained.rest[slot.name]) for slot in slots}
    return {"encoder": pretrained.params, **traverse_util.unflatten_dict(flat)}


def _folder(place: files.Location) -> Path | ZipPath:
    """The folder that holds `config.json`: itself, or the only one in an archive."""
    if isinstance(place, str | Path) and Path(place).is_dir():
        folder = Path(place)
    elif isinstance(place, str | Path) and Path(place).is_file():
        folder = ZipPath(place)
    else:
        resolved = files.resolve(place)
        folder = resolved
        if isinstance(resolved, ZipPath) and not resolved.at.endswith("/"):
            folder = ZipPath(resolved.root, f"{resolved.at}/")
    if (folder / CONFIG).is_file():
        return folder
    raise InputError(f"{place}: expected a folder with {CONFIG}")


def _json(path: Path | ZipPath) -> dict[str, Any]:
    with files.open_bytes(path) as stream:
        content = stream.read()
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise InputError(f"{path}: expected a JSON object")
    return parsed


def _tensors(folder: Path | ZipPath) -> dict[str, np.ndarray]:
    if (folder / WEIGHTS).is_file():
        return _shard(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        pickled = "; pytorch_model.bin is a pickle, which can run code and is not read"
        there = (folder / "pytorch_model.bin").is_file()
        raise InputError(f"{folder}: expected {WEIGHTS}{pickled if there else ''}")
    index = _json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not all(
        isinstance(v, str) and "/" not in v for v in index.values()
    ):
        raise InputError(f"{folder / INDEX}: expected names of files in weight_map")
    tensors: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(index.values()):
        tensors |= _shard(folder / name)
    missing = [name for name in index if name not in tensors]
    if missing:
        raise InputError(f"{folder / INDEX}: no shard has {', '.join(missing)}")
    return tensors


def _shard(path: Path | ZipPath) -> dict[str, np.ndarray]:
    return {
        name: np.asarray(value, np.float32) if value.dtype.kind == "f" else value
        for name, value in read_tensors(path).items()
    }


def _without_prefix(
    tensors: Mapping[str, np.ndarray], layout: Layout
) -> dict[str, np.ndarray]:
    """Names as the bare encoder has them; heads keep theirs."""
    prefix = layout.prefix
    if not any(name.startswith(prefix) for name in tensors):
        return dict(tensors)
    return {name.removeprefix(prefix): value for name, value in tensors.items()}


def _assign(
    tensors: dict[str, np.ndarray], layout: Layout, config: TextConfig, place: str
) -> tuple[Any, dict[str, np.ndarray]]:
    shapes = _shapes(layout, config)
    flat, missing, wrong, used = {}, [], [], set()
    for slot in layout.slots(config):
        used.add(slot.name)
        if slot.name not in tensors:
            missing.append(slot.name)
            continue
        value = stored(slot, tensors[slot.name])
        if value.shape != shapes[slot.path]:
            wrong.append(f"{slot.name} {tensors[slot.name].shape}")
            continue
        flat[slot.path] = np.ascontiguousarray(value)
    others = {n: v for n, v in tensors.items() if n not in used}
    rest = {n: v for n, v in others.items() if n.startswith(_HEADS)}
    unknown = [n for n in others if n not in rest and not n.endswith(layout.ignored)]
    problems = (("missing", missing), ("of another shape", wrong), ("unknown", unknown))
    told = [f"{what}: {', '.join(dict.fromkeys(of))}" for what, of in problems if of]
    if told:
        raise InputError(f"{place}: tensors {'; '.join(told)}")
    return traverse_util.unflatten_dict(flat), rest


def _shapes(layout: Layout, config: TextConfig) -> dict[tuple[str, ...], tuple]:
    """The shape of every parameter, from the config alone."""
    dim, inner = config.dim, config.inner
    tables = {
        "pieces": config.vocab,
        "places": config.positions,
        "segments": config.segments,
    }

    def shape(slot: Slot) -> tuple[int, ...]:
        owner, leaf = slot.path[-2], slot.path[-1]
        if leaf == "embedding":
            return tables[owner], dim
        outputs = inner if owner == "inner" else dim
        if leaf == "kernel":
            return (inner if owner == "outer" else dim), outputs
        return (outputs,)

    return {slot.path: shape(slot) for slot in layout.slots(config)}
