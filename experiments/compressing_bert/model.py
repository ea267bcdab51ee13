"""Encoders pretrained further while their weights are removed, made once and kept."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from etils import epath
from flax import traverse_util
from safetensors import numpy as safetensors

from experiments.common.devices import mesh_for
from experiments.compressing_bert.config import PRUNED, Config
from experiments.compressing_bert.data import World
from experiments.compressing_bert.published import label
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.data import batching, files
from jaxemb.data.tensors import read_tensors
from jaxemb.errors import InputError
from jaxemb.optim import masks as masks_lib
from jaxemb.train import loop, results

_HELD_OUT_KEY = 7  # of the pieces hidden in held-out texts, the same for every model
_RANDOM_SEED = 0


@dataclasses.dataclass(frozen=True)
class Removal:
    """Which weights an encoder loses while it is pretrained, and how many."""

    criterion: Literal["magnitude", "random", "burn-in"]
    """Burn-in: none, and before the others."""
    percent: int = 0

    @property
    def folder(self) -> str:
        """Name of its folder; without removed weights all criteria are one."""
        if self.criterion == "burn-in":
            return self.criterion
        return f"{self.criterion}-{self.percent}" if self.percent else "dense"

    @property
    def label(self) -> str:
        """As rows call it."""
        arm = "pruned" if self.criterion == "magnitude" else self.criterion
        return label(arm, self.percent)


BURN_IN, DENSE = Removal("burn-in"), Removal("magnitude", 0)


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """A pretrained model."""

    params: Any
    """Of `nn.MaskedLM`; removed weights are 0."""

    @property
    def masks(self) -> dict[str, np.ndarray]:
        """Of the matrices that are pruned, by path."""
        return {
            path: np.asarray(value) != 0
            for path, value in masks_lib.selected(self.params, PRUNED).items()
        }


class Pretrainer:
    """Trains encoders, or finds them trained."""

    def __init__(self, config: Config, world: World):
        self._config, self._world = config, world
        self._folder = Path(config.shared_folder)
        self._module = nn.MaskedLM(world.encoder.config)
        self._evaluate = train.everywhere(self._held_out_loss)
        self._kept: dict[Removal, Trained] = {}
        self._given = _given(world)
        self.folders: list[Path] = []

    def trained(self, removal: Removal) -> Trained:
        """The model with these weights removed."""
        if removal in self._kept:
            return self._kept[removal]
        found = Trained(read_params(self._ready(removal) / "params.safetensors"))
        if removal in (BURN_IN, DENSE):
            self._kept[removal] = found
        return found

    def held_out(self, removal: Removal) -> tuple[float, ...]:
        """Its loss of each held-out batch, in nats a hidden piece."""
        return tuple(json.loads((self._ready(removal) / "held_out.json").read_text()))

    def loss(self, removal: Removal) -> float:
        """Over all held-out batches."""
        return float(np.mean(self.held_out(removal)))

    def held_out_of(self, params: Any) -> tuple[float, ...]:
        """The losses of other parameters of the same module."""
        variables = {"params": jax.tree.map(jnp.asarray, params)}
        size = self._config.pretraining.batch_size
        texts = self._world.held_out
        found = []
        for number, start in enumerate(range(0, len(texts) - size + 1, size)):
            ids = texts[start : start + size]
            batch = {"ids": ids, "number": np.full(len(ids), number, np.int32)}
            found.append(float(self._evaluate(variables, batch)))
        return tuple(found)

    def _ready(self, removal: Removal) -> Path:
        """Its folder, in which it is trained and judged."""
        folder = self._folder / removal.folder
        if folder in self.folders:
            return folder
        config = {
            "arm": removal.folder,
            **results.as_json(self._config.pretraining),
            "encoder": self._world.digest,
            "head": "new" if self._given is None else "given",
            "text": self._config.text,
        }
        # An encoder of other settings is not taken for this one.
        loop.claim(epath.Path(folder), config)
        told = folder / "held_out.json"
        if not told.exists():
            self._train(removal, folder, config)
        self.folders.append(folder)
        return folder

    def _train(self, removal: Removal, folder: Path, config: dict[str, Any]) -> None:
        settings = self._config.pretraining
        burns_in = removal == BURN_IN
        steps = settings.burn_in if burns_in else settings.gradual + settings.recovery
        params = self._start(removal)
        tx = self._optimiser(removal, steps)
        plan = batching.Shuffled(
            {"ids": self._world.train}, settings.batch_size, seed=0 if burns_in else 1
        )
        with results.recorded(folder):
            state = train.fit(
                train.State.create({"params": params}, tx, jax.random.key(1)),
                train.data_parallel(
                    train.make_step(self._loss, tx),
                    mesh_for(settings.batch_size),
                    mode=self._config.run.parallel,
                ),
                plan,
                steps,
                folder,
                keep=1,
                save_every=max(50, steps // 10),
                log_every=10,
                config=config,
                name=removal.folder,
                tensorboard=self._config.run.tensorboard,
                progress=self._config.run.progress,
            )
            held_out = self.held_out_of(state.params)
            write_params(folder / "params.safetensors", state.params)
        with files.write_atomically(folder / "held_out.json") as part:
            part.write_text(json.dumps(held_out))
        # The optimiser's state is three times the model and of no further use.
        shutil.rmtree(folder / "checkpoints")
        terminal.say(f"{removal.folder}: held-out loss {np.mean(held_out):.3f}")

    def _start(self, removal: Removal) -> Any:
        """The parameters that training begins with.

        A head that came with the weights needs no burn-in, which then stands before
        random removal alone, as in the paper.
        """
        given = self._given
        if removal == BURN_IN and given is None:
            given = pretrained.variables_above(
                self._world.encoder, self._module, jax.random.key(0)
            )["params"]
        elif given is None or removal.criterion == "random":
            given = self.trained(BURN_IN).params
        params = jax.tree.map(jnp.asarray, given)
        if removal.criterion == "random":
            gone = optim.keep_masks(
                params,
                removal.percent / 100,
                where=PRUNED,
                criterion="random",
                seed=_RANDOM_SEED,
            )
            params = optim.delete_information(params, gone)
        return params

    def _optimiser(self, removal: Removal, steps: int) -> optax.GradientTransformation:
        settings = self._config.pretraining
        rate = optim.warmup_linear(
            settings.learning_rate, min(settings.warmup, steps - 1), steps
        )
        inner = optax.chain(
            optax.clip_by_global_norm(settings.clip_norm), optim.bert_adam(rate)
        )
        if not removal.percent:
            return inner
        if removal.criterion == "random":
            return optim.keep_zeros(inner, where=PRUNED)
        schedule = optim.cubic_sparsity(
            removal.percent / 100,
            settings.gradual,
            period=settings.period,
            refresh_after=settings.refresh_after,
        )
        return optim.pruned(inner, schedule, where=PRUNED, regrow=settings.regrow)

    def _hidden_loss(self, variables, ids, key, **how):
        """The loss of every hidden piece, and which of them there are."""
        mask = jnp.ones(ids.shape, bool)
        hidden = pretrained.mlm_mask(
            key,
            ids,
            mask,
            vocab=self._world.encoder.config.vocab,
            mask_id=self._world.mask_id,
            special_ids=self._world.special_ids,
        )
        places, real = pretrained.chosen_places(
            hidden.chosen, self._config.pretraining.places
        )
        logits = self._module.apply(variables, hidden.ids, mask, None, places, **how)
        right = jnp.take_along_axis(ids, places, axis=1)
        return losses.softmax_cross_entropy(logits, right, mask=real), real

    def _loss(self, variables, batch, key):
        hide_key, dropout_key = jax.random.split(key)
        each, real = self._hidden_loss(
            variables,
            batch["ids"],
            hide_key,
            deterministic=False,
            rngs={"dropout": dropout_key},
        )
        return jnp.sum(each) / jnp.maximum(jnp.sum(real), 1), {}

    def _held_out_loss(self, variables, batch):
        key = jax.random.fold_in(jax.random.key(_HELD_OUT_KEY), batch["number"][0])
        each, real = self._hidden_loss(variables, batch["ids"], key, deterministic=True)
        return jnp.sum(each) / jnp.maximum(jnp.sum(real), 1)


def _given(world: World) -> Any | None:
    """All parameters, where the weights came with a head for hidden pieces."""
    try:
        return pretrained.masked_lm_params(world.encoder)
    except InputError:
        return None


def flattened(params: Any) -> dict[str, np.ndarray]:
    """Parameters by path."""
    flat = traverse_util.flatten_dict(params, sep="/")
    return {path: np.asarray(value) for path, value in flat.items()}


def write_params(path: Path, params: Any) -> None:
    """Writes parameters whole, or not at all."""
    flat = {n: np.ascontiguousarray(value) for n, value in flattened(params).items()}
    with files.write_atomically(path) as part:
        part.write_bytes(safetensors.save(flat))


def read_params(path: Path) -> Any:
    """What `write_params` wrote."""
    return traverse_util.unflatten_dict(read_tensors(path), sep="/")
