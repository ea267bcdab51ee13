"""Encoders pretrained further while their weights are removed, made once and kept."""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import traverse_util
from safetensors import numpy as safetensors

from experiments.common.devices import mesh_for
from experiments.compressing_bert.config import PRUNED, Config
from experiments.compressing_bert.data import World
from jaxemb import losses, nn, optim, pretrained, terminal, train
from jaxemb.data import batching
from jaxemb.data.tensors import read_tensors
from jaxemb.train import results

_BURN_IN = "burn-in"
_HELD_OUT_KEY = 7  # of the pieces hidden in held-out texts, the same for every model


@dataclasses.dataclass(frozen=True)
class Arm:
    """Which weights are removed, and how many."""

    criterion: str
    """magnitude, random, or burn-in: none, and before the others."""
    percent: int = 0

    @property
    def folder(self) -> str:
        """Name of its folder; without removed weights all criteria are one."""
        if self.criterion == _BURN_IN:
            return _BURN_IN
        return f"{self.criterion}-{self.percent}" if self.percent else "dense"

    @property
    def label(self) -> str:
        """As rows call it."""
        name = "pruned" if self.criterion == "magnitude" else self.criterion
        return f"{name} {self.percent} %"


@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    """A pretrained model."""

    params: Any
    """Of `nn.MaskedLM`; removed weights are 0."""
    held_out: tuple[float, ...]
    """Loss of each held-out batch, in nats a hidden piece."""

    @property
    def loss(self) -> float:
        """Over all held-out batches."""
        return float(np.mean(self.held_out))

    @property
    def masks(self) -> dict[str, np.ndarray]:
        """Of the matrices that are pruned, by path."""
        chosen = optim.keep_masks(self.params, 0.0, where=PRUNED)
        flat = flattened(self.params)
        return {path: np.asarray(flat[path]) != 0 for path in chosen}


class Pretrainer:
    """Trains arms, or finds them trained."""

    def __init__(self, config: Config, world: World):
        self._config, self._world = config, world
        self._folder = Path(config.shared_folder)
        self._module = nn.MaskedLM(world.encoder.config)
        self._evaluate = train.everywhere(self._held_out_loss)
        self._kept: dict[str, Trained] = {}
        self.folders: list[Path] = []

    def trained(self, arm: Arm) -> Trained:
        """The model of an arm; all but burn-in go on from that one."""
        if arm.folder in self._kept:
            return self._kept[arm.folder]
        folder = self._folder / arm.folder
        weights, told = folder / "params.safetensors", folder / "held_out.json"
        if not told.exists():
            self._train(arm, folder, weights, told)
        if folder not in self.folders:
            self.folders.append(folder)
        params = traverse_util.unflatten_dict(read_tensors(weights), sep="/")
        found = Trained(params, tuple(json.loads(told.read_text())))
        if arm.folder in (_BURN_IN, "dense"):
            self._kept[arm.folder] = found
        return found

    def _train(self, arm: Arm, folder: Path, weights: Path, told: Path) -> None:
        settings = self._config.pretraining
        steps = settings.gradual + settings.recovery
        if arm.criterion == _BURN_IN:
            steps = settings.burn_in
            variables = pretrained.variables_above(
                self._world.encoder, self._module, jax.random.key(0)
            )
        else:
            start = self.trained(Arm(_BURN_IN))
            variables = {"params": jax.tree.map(jnp.asarray, start.params)}
        tx = self._optimiser(arm, steps)
        plan = batching.Shuffled(
            {"ids": self._world.train},
            settings.batch_size,
            seed=0 if arm.criterion == _BURN_IN else 1,
        )
        with results.recorded(folder):
            state = train.fit(
                train.State.create(variables, tx, jax.random.key(1)),
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
                config={"arm": arm.folder, **results.as_json(settings)},
                name=arm.folder,
                tensorboard=self._config.run.tensorboard,
                progress=self._config.run.progress,
            )
            held_out = self._held_out(state.variables)
            flat = {
                path: np.ascontiguousarray(value)
                for path, value in flattened(state.params).items()
            }
            weights.write_bytes(safetensors.save(flat))
        part = told.with_suffix(".part")
        part.write_text(json.dumps(held_out))
        part.rename(told)
        # The optimiser's state is three times the model and of no further use.
        shutil.rmtree(folder / "checkpoints")
        terminal.say(f"{arm.folder}: held-out loss {np.mean(held_out):.3f}")

    def _optimiser(self, arm: Arm, steps: int) -> optax.GradientTransformation:
        settings = self._config.pretraining
        rate = optim.warmup_linear(
            settings.learning_rate, min(settings.warmup, steps - 1), steps
        )
        inner = optax.chain(
            optax.clip_by_global_norm(settings.clip_norm), optim.bert_adam(rate)
        )
        if not arm.percent:
            return inner
        schedule = optim.cubic_sparsity(
            arm.percent / 100,
            settings.gradual,
            period=settings.period,
            refresh_after=settings.refresh_after,
        )
        return optim.pruned(
            inner,
            schedule,
            where=PRUNED,
            criterion="random" if arm.criterion == "random" else "magnitude",
            regrow=settings.regrow,
        )

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

    def _held_out(self, variables: Mapping[str, Any]) -> list[float]:
        size = self._config.pretraining.batch_size
        texts = self._world.held_out
        found = []
        for number, start in enumerate(range(0, len(texts) - size + 1, size)):
            ids = texts[start : start + size]
            batch = {"ids": ids, "number": np.full(len(ids), number, np.int32)}
            found.append(float(self._evaluate(variables, batch)))
        return found


def flattened(params: Any) -> dict[str, np.ndarray]:
    """Parameters by path."""
    flat = traverse_util.flatten_dict(params, sep="/")
    return {path: np.asarray(value) for path, value in flat.items()}
