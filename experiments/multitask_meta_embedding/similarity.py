"""Measures systems on the similarity lists: Tables 1 and 2, controls, ablations."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.multitask_meta_embedding import data, model, training
from experiments.multitask_meta_embedding.config import TITLES, Config, MultiTask
from experiments.multitask_meta_embedding.training import UNLABELLED, Run
from jaxemb import nn as jnn
from jaxemb import terminal
from jaxemb.data.vectors import write_word_vectors
from jaxemb.errors import InputError
from jaxemb.eval import holdout
from jaxemb.spaces.ensemble import EmbeddingEnsemble
from jaxemb.train import results

WITHOUT = ", λ = 0"
DEFAULT = "pairs"  # what is taken away from supervision unless a control says otherwise
BRIER = "Brier"  # what supervises controls and ablations

# λ by supervision and by the list held out.
Weights = Mapping[str, Mapping[int, float]]


@dataclasses.dataclass
class Measured:
    """Cosines of all pairs, by system and seed, and what else is told of the run."""

    world: data.World
    lists: Sequence[int]
    """The lists that are held out in turn, and tested on."""
    cosines: dict[str, list[np.ndarray]] = dataclasses.field(default_factory=dict)
    dev: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """Of supervised systems ρ × 100 on the pairs that chose their epoch, one a seed."""
    told: dict[str, Any] = dataclasses.field(default_factory=dict)
    parts: set[Path] = dataclasses.field(default_factory=set)
    """Where it is recorded by whom each was trained."""

    def add(self, name: str, *cosines: np.ndarray) -> None:
        """One array a seed."""
        self.cosines[name] = [np.asarray(c, np.float64) for c in cosines]

    def add_trained(self, name: str, *cosines: np.ndarray) -> bool:
        """Likewise, of what knows every word: where a cosine is none, it diverged.

        A system of which a seed diverged has no figures, and results say so.

        Returns:
          Whether it has figures.
        """
        tested = np.isin(self.world.pool.of, self.lists)
        lost = sum(bool(np.isnan(one[tested]).any()) for one in cosines)
        if not lost:
            self.add(name, *cosines)
            return True
        told = f"{lost} of {len(cosines)} seeds"
        self.told.setdefault("diverged", {})[name] = told
        terminal.say(f"{name} has no figures: {told} diverged")
        return False


class Measurer:
    """Trains what is not there yet, piece by piece, and keeps it."""

    def __init__(self, config: Config, world: data.World):
        self._config, self._world = config, world
        self._folder = Path(config.trained_folder)
        self._lists = _tested(config, world.pool.names)
        self.measured = Measured(world, self._lists)
        used = [(d.name, d.sha256, d.size) for d in world.data]
        self._described = {
            "data": used,
            "words": len(world.ensemble),
            "pairs": len(world.pool.pairs),
        }

    def _kept(self, described: Mapping, compute) -> tuple[dict[str, np.ndarray], float]:
        """The arrays of a piece, and how many seconds it was trained."""
        whole = {**self._described, **described}
        arrays, recorded = training.kept(self._folder, whole, compute)
        self.measured.parts.add(recorded)
        return arrays, results.origin(recorded)["seconds"]

    # Table 1.

    def unsupervised(self) -> None:
        """Single sources, plain combinations, and what is trained to reconstruct."""
        ensemble, found = self._world.ensemble, self.measured
        for i, name in enumerate(ensemble.names):
            matrix, known = ensemble.matrices[i], ensemble.known[:, i]
            found.add(name, training.pair_cosines(self._world, matrix, known))
        width = min(self._config.autoencoder.hidden, sum(ensemble.widths))
        for name, matrix in (
            ("CONC", ensemble.concatenate()),
            ("AV", ensemble.average()),
            ("SVD", ensemble.svd(width)),
        ):
            found.add(name, training.pair_cosines(self._world, matrix))
        settings = self._config.autoencoder
        for init, seeds in (
            ("glorot", settings.seeds),
            ("paper", settings.paper_seeds),
        ):
            for name in self._modules(init) if seeds else ():
                if settings.systems and name not in settings.systems:
                    continue
                for loss in self._config.losses:
                    self._autoencoder(name, loss, init, seeds)

    def _modules(self, init: str) -> Mapping[str, Any]:
        ensemble = self._world.ensemble
        return model.self_supervised(self._config, ensemble.widths, len(ensemble), init)

    def _autoencoder(self, name: str, loss: str, init: str, seeds: int) -> None:
        settings = self._config.autoencoder
        described = results.as_json(settings)
        del described["paper_seeds"], described["systems"]
        described |= {"system": name, "loss": loss, "init": init, "seeds": seeds}

        def compute() -> dict[str, np.ndarray]:
            module = self._modules(init)[name]
            trained = training.self_supervised(
                self._world.ensemble,
                module,
                loss,
                seeds,
                settings,
            )
            systems: dict[str, list[np.ndarray]] = {}
            for params, code in trained:
                for label, matrix in _systems(
                    name, module, params, code, self._world.ensemble
                ):
                    one = training.pair_cosines(self._world, matrix)
                    systems.setdefault(label, []).append(one)
            terminal.say(f"{name}, {TITLES[loss]}, {init}: {seeds} seeds trained")
            return {label: np.stack(rows) for label, rows in systems.items()}

        suffix = "" if init == "glorot" else ", N(0, 1)"
        for label, rows in self._kept(described, compute)[0].items():
            self.measured.add_trained(f"{TITLES[loss]} {label}{suffix}", *rows)

    def export(self, folder: Path, ensemble: EmbeddingEnsemble) -> list[Path]:
        """Trains the concatenated autoencoder on any words, and writes its table."""
        settings = self._config.autoencoder
        widths = ensemble.widths
        modules = model.self_supervised(self._config, widths, len(ensemble), "glorot")
        paths = []
        for loss in self._config.losses:
            trained = training.self_supervised(
                ensemble,
                modules[model.CONCATENATED],
                loss,
                1,
                settings,
            )
            path = folder / f"meta-{loss}.txt"
            write_word_vectors(path, ensemble.table(trained[0][1]))
            paths.append(path)
        return paths

    # Table 2.

    def supervised(self) -> None:
        """All pairs of losses, then the controls, with λ by pairs held out."""
        settings = self._config.multitask
        self.measured.told["pairs removed from supervision"] = {
            control: {
                one.name: one.removed
                for number, one in enumerate(self._holdouts(control))
                if number in self._lists
            }
            for control in ("pairs", "words")
        }
        # Without reconstruction its loss does not matter: any of them.
        first = self._config.losses[0]
        nothing = {BRIER: dict.fromkeys(self._lists, 0.0)}
        self.pieces(first, nothing, settings, suffix=WITHOUT)
        for loss in self._config.losses:
            weights = self.weights(loss)
            self.pieces(loss, weights, settings, keep=True)
            brier = weights[BRIER if BRIER in weights else settings.supervisions[-1]]
            self.pieces(loss, {UNLABELLED: brier}, settings)
            if settings.paper_seeds:
                self.pieces(
                    *(loss, weights, settings, settings.paper_seeds),
                    init="paper",
                    suffix=", N(0, 1)",
                )
            for control in settings.controls:
                self.pieces(
                    *(loss, {BRIER: brier}, settings, settings.control_seeds),
                    control=control,
                    suffix=f", {control}",
                )

    def weights(self, loss: str) -> Weights:
        """λ of the highest correlation on validation pairs.

        These are of the lists that supervise. Each list held out has a choice of its
        own, since what is best on average was chosen by its scores too: they supervise
        and validate the models of the other lists. So has each supervision, as its
        loss has a scale of its own.
        """
        kinds = self._config.multitask.supervisions
        found = {kind: self._weights_of(loss, kind) for kind in kinds}
        names = self._world.pool.names
        self.measured.told.setdefault("λ", {})[loss] = {
            kind: {names[h]: weight for h, weight in of_lists.items()}
            for kind, of_lists in found.items()
        }
        return found

    def _weights_of(self, loss: str, kind: str) -> dict[int, float]:
        settings, lists = self._config.multitask, self._lists
        tried = settings.weights
        if len(tried) == 1:
            return dict.fromkeys(lists, tried[0])
        runs = [Run(kind, h, 0, weight) for weight in tried for h in lists]
        name = f"{TITLES[loss]}-{kind}"
        arrays, seconds = self._trained(loss, settings, runs, name=f"λ of {name}")
        self._tell_seconds("the choice of λ", name, seconds)
        dev = np.where(np.isnan(arrays["dev"]), -1.0, arrays["dev"])  # diverged
        best = dev.max(axis=1).reshape(len(tried), -1).argmax(axis=0)
        return dict(zip(lists, [tried[place] for place in best], strict=True))

    def _tell_seconds(self, of: str, name: str, seconds: float) -> None:
        told = self.measured.told.setdefault("seconds of training", {})
        told.setdefault(of, {})[name] = seconds

    def pieces(
        self,
        loss: str,
        weights: Weights,
        settings: MultiTask,
        seeds: int | None = None,
        *,
        init: str = "glorot",
        control: str = DEFAULT,
        keep: bool = False,
        suffix: str = "",
    ) -> None:
        """Trains all supervisions × lists × seeds of one loss, and takes them in.

        Args:
          loss: of reconstruction.
          weights: of each supervision that is wanted.
          settings: of all runs.
          seeds: how many; those of `settings` unless given.
          init: how weights begin.
          control: what is taken away from supervision.
          keep: whether encoders are kept, as those of Table 2 are.
          suffix: of the systems' names.
        """
        seeds = settings.seeds if seeds is None else seeds
        runs = _runs(weights, seeds)
        arrays, seconds = self._trained(
            loss,
            settings,
            runs,
            init=init,
            control=control,
            keep=keep,
            name=f"{TITLES[loss]}{suffix}",
        )
        if keep:
            self._tell_seconds("all models of Table 2", TITLES[loss], seconds)
        of = self._world.pool.of
        told = self.measured.told
        epochs = told.setdefault("epochs chosen", {})
        for kind in weights:
            name = f"{TITLES[loss]}-{kind}{suffix}"
            rows = []
            for seed in range(seeds):
                whole = np.full(len(of), np.nan)
                for number, run in enumerate(runs):
                    if (run.supervision, run.seed) == (kind, seed):
                        own = of == run.holdout
                        whole[own] = arrays["cosines"][number, own]
                rows.append(whole)
            if not self.measured.add_trained(name, *rows):
                continue
            own = [run for run in runs if run.supervision == kind]
            dev = arrays["dev"][[run.supervision == kind for run in runs]]
            self.measured.dev[name] = [
                100 * float(np.mean(np.nanmax(dev[[r.seed == seed for r in own]], 1)))
                for seed in range(seeds)
            ]
            chosen = 1 + np.nanargmax(dev, axis=1)
            epochs[name] = np.bincount(chosen, minlength=settings.epochs + 1).tolist()
            if later := int(np.isnan(dev).any(axis=1).sum()):
                told.setdefault("diverged after the epoch chosen", {})[name] = (
                    f"{later} of {len(dev)} runs"
                )

    def encoders(self, loss: str) -> tuple[list[Run], np.ndarray]:
        """The models of Table 2, of which analogies are asked."""
        settings = self._config.multitask
        runs = _runs(self.weights(loss), settings.seeds)
        arrays, _ = self._trained(loss, settings, runs, keep=True, name=TITLES[loss])
        return runs, arrays["encoders"]

    def ablations(self) -> None:
        """Distances of the head, a second hidden layer, plain gradient descent."""
        base = self._config.multitask
        variants = {
            f", {distance}": dataclasses.replace(base, distance=distance)
            for distance in ("manhattan", "euclidean", "cosine", "asymmetric")
        }
        variants[", 2 hidden layers"] = dataclasses.replace(
            base, hidden=2 * base.hidden
        )
        plain = dataclasses.replace(
            base,
            optimizer="sgd",
            learning_rate=0.05,
            batch_size=32,
            epochs=self._config.sgd_epochs,
        )
        variants[", SGD 0.05"] = plain
        for loss in self._config.losses:
            for suffix, settings in variants.items():
                self._ablation(loss, settings, suffix)
            self._ablation(loss, plain, ", SGD 0.05, N(0, 1)", init="paper")

    def _ablation(self, loss: str, settings: MultiTask, suffix: str, **how) -> None:
        weights = {BRIER: dict.fromkeys(self._lists, settings.weights[0])}
        self.pieces(loss, weights, settings, suffix=suffix, **how)

    def _holdouts(self, control: str) -> list[holdout.Holdout]:
        how = DEFAULT if control == "shuffled" else control
        share = self._config.multitask.validation
        return holdout.leave_one_out(self._world.pool, how, validation=share)

    def _trained(
        self,
        loss: str,
        settings: MultiTask,
        runs: Sequence[Run],
        *,
        init: str = "glorot",
        control: str = DEFAULT,
        keep: bool = False,
        name: str,
    ) -> tuple[dict[str, np.ndarray], float]:
        described = results.as_json(settings)
        for field in ("supervisions", "weights", "seeds", "paper_seeds"):
            del described[field]
        for field in ("controls", "control_seeds", "hold_outs"):
            del described[field]
        described |= {
            "loss": loss,
            "init": init,
            "control": control,
            "runs": [list(run) for run in runs],
            "encoders": keep,
        }

        def compute() -> dict[str, np.ndarray]:
            holdouts = self._holdouts(control)
            labels = [
                training.labels_of(self._world, control == "shuffled", run.seed)
                for run in runs
            ]
            return training.multitask(
                self._world,
                settings,
                loss,
                init,
                runs,
                np.stack([holdouts[run.holdout].train for run in runs]),
                np.stack([holdouts[run.holdout].dev for run in runs]),
                np.stack(labels),
                keep_encoders=keep,
                name=f"{name} ({init}, {control})",
            )

        return self._kept(described, compute)


def _runs(weights: Weights, seeds: int) -> list[Run]:
    return [
        Run(kind, h, seed, weight)
        for kind, of_lists in weights.items()
        for seed in range(seeds)
        for h, weight in of_lists.items()
    ]


def _tested(config: Config, names: Sequence[str]) -> list[int]:
    """The lists that are held out, by their places."""
    wanted = config.multitask.hold_outs or names
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(
            f"--multitask.hold-outs: {unknown[0]!r} is none of the similarity lists; "
            f"expected some of {', '.join(names)}"
        )
    return [number for number, name in enumerate(names) if name in wanted]


def _systems(name, module, params, code, ensemble):
    """The meta-embeddings that one trained module gives."""
    yield name, code
    if name != "MTE":
        return
    for target, source in enumerate(ensemble.names):
        one = jnn.TAE(module.widths, target, module.hidden)
        found = one.apply(
            {"params": params[f"target_{target}"]},
            np.asarray(ensemble.concatenate(), np.float32),
            ensemble.known,
            deterministic=True,
        )
        yield f"TAE→{source}", np.asarray(found.code)
