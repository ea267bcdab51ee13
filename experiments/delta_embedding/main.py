"""Trains every arm on every fold or seed, then tables, verdicts and figures."""

import dataclasses
import json
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from etils import epath

from experiments.common.devices import mesh_for
from experiments.delta_embedding import analyse, claims, data, model, scoring, shown
from experiments.delta_embedding.config import (
    BESIDE_PARTS,
    OFFLINE,
    SLUG,
    Arm,
    Config,
    arm,
)
from experiments.delta_embedding.finished import OTHERS, Finished, best_epoch
from experiments.delta_embedding.task import Split, Task
from experiments.delta_embedding.tuned import Table, part_folder
from jaxemb import optim, storage, terminal, train
from jaxemb.analysis import report
from jaxemb.data import batching, sources
from jaxemb.train import checkpoints, loop, results


def run(config: Config) -> dict:
    """Runs a preset and returns its results, as written to `results.json`."""
    try:
        return _run(config)
    except sources.Offline as error:
        if config.preset != "demo":
            raise
        terminal.say(
            f"no network ({error}): the same job on a built-in synthetic world"
        )
        return _run(dataclasses.replace(config, **OFFLINE))


def _run(config: Config) -> dict:
    config.run.profile_steps  # noqa: B018 (a bad flag is told before the work starts)
    config.check()
    arms = [arm(name) for name in config.arms]
    workdir = epath.Path(config.workdir)
    task = data.load(config)
    tests = data.load_tests(config)
    main_score = config.measures[0]
    if train.is_primary():
        words = "".join(f"{word}\n" for word in task.vocab.words)
        storage.write_text(workdir / "words.txt", words)
    tables = []
    for name in config.vectors:
        words, described = data.load_vectors(config, name, task, tests.words)
        table = Table(words, task.table(words), described)
        tables.append(table)
        systems = {a.name: System(config, a, task, table) for a in arms}
        for part in range(config.parts):
            split = task.split(config, part)
            for a in arms:
                folder = part_folder(config, workdir, table.name, a.name, part)
                best = systems[a.name].fit_part(split, part, folder)
                if train.is_primary():
                    title = main_score.title.removesuffix(" (%)")
                    terminal.say(
                        f"{' · '.join(folder.parts[-3:])}: {title} "
                        f"{100 * best[main_score.score]:.2f} at step {best['step']}"
                    )
    if not train.is_primary():
        return {}
    finished = Finished(config, task, tables, tests, workdir)
    rows, judged = analyse.rows(finished), claims.judged(finished)
    written = results.write(
        workdir,
        slug=SLUG,
        preset=config.preset,
        config=analyse.described_config(finished),
        origins=finished.origins(),
        data=[*task.data, *(table.data for table in tables)],
        rows=rows,
        claims=judged,
    )
    shown.write_figures(finished)
    shown.print_tables(config, rows, judged)
    shown.print_moved_words(finished)
    if config.export:
        print(f"tuned tables: {', '.join(map(str, shown.export(finished)))}")
    if config.report:
        page = report.write([workdir], workdir / "report.html")
        print(f"report: {page}")
    return written


class System:
    """One arm, compiled once for all folds or seeds."""

    def __init__(self, config: Config, arm: Arm, task: Task, table: Table):
        self._config = config
        self._others = task.others
        self._buckets = task.buckets(config)
        module = model.build(config, arm, task, table.matrix.shape[1])
        self._initial = model.initializer(module, table.matrix)
        epochs = (task.steps_per_epoch(config, p) for p in range(config.parts))
        self._tx = model.optimizer(config, arm, config.epochs * max(epochs))
        mesh = mesh_for(config.batch_size)
        step = train.make_step(
            model.loss_fn(module), self._tx, accumulate=config.accumulate
        )
        self._step = train.data_parallel(step, mesh, mode=config.run.parallel)
        self._score = scoring.scorer(config, task, module)
        inputs = {d.name: d.sha256 for d in (*task.data, table.data)}
        self._described = {"arm": arm.name, "data": inputs, **_part_of(config)}

    def fit_part(self, split: Split, part: int, folder: epath.Path) -> dict:
        """Trains one part, or finds it done; returns the scores of its best epoch."""
        config = self._config
        batches = batching.Shuffled(
            split.train,
            config.batch_size,
            seed=part,
            buckets=self._buckets,
            process_index=jax.process_index(),
            process_count=jax.process_count(),
        )
        num_steps = config.epochs * batches.steps_per_epoch
        described = {**self._described, "part": part}
        if (folder / checkpoints.FOLDER / str(num_steps)).is_dir():
            loop.claim(folder, described)
        else:
            init_key, train_key = jax.random.split(jax.random.key(part))
            state = train.State.create(self._initial(init_key), self._tx, train_key)
            held_out = {"dev": split.dev, "test": split.test}
            with results.recorded(folder):
                train.fit(
                    state,
                    self._step,
                    batches,
                    num_steps,
                    folder,
                    evaluate=lambda state: self._evaluate(state, held_out),
                    evaluate_every=batches.steps_per_epoch,
                    save_every=5 * batches.steps_per_epoch,
                    keep_best=f"dev/{config.kind.selects}",
                    config=described,
                    name="/".join(folder.parts[-3:]),
                    tensorboard=config.run.tensorboard,
                    profile=config.run.profile_steps if part == 0 else None,
                    progress=config.run.progress,
                )
        if train.is_primary() and self._others:
            self._score_others(folder)
        return best_epoch(folder, config.kind.selects)

    def _evaluate(
        self, state: train.State, sets: Mapping[str, batching.Columns]
    ) -> dict[str, float]:
        variables = state.variables
        if self._config.model.ema is not None:
            variables = {**variables, "params": optim.ema_params(state.opt_state)}
        return self._named_scores(variables, sets)

    def _score_others(self, folder: epath.Path) -> None:
        """Tests the best epoch on the sets that wait for the end, if not yet done."""
        path = folder / OTHERS
        if path.exists():
            return
        with results.recorded(folder):
            saved = train.load_params(folder / checkpoints.BEST)
            variables = {**saved, "params": saved.pop("ema", saved["params"])}
            variables = jax.tree.map(jnp.asarray, variables)
            scores = self._named_scores(variables, self._others)
            storage.write_text(path, json.dumps(scores) + "\n")

    def _named_scores(
        self, variables: dict, sets: Mapping[str, batching.Columns]
    ) -> dict[str, float]:
        return {
            f"{name}/{score}": value
            for name, columns in sets.items()
            for score, value in self._score(variables, columns).items()
        }


def _part_of(config: Config) -> dict:
    """The settings that decide the numbers of one part."""
    settings = results.as_json(config)
    for name in BESIDE_PARTS:
        del settings[name]
    # Parts trained before there was a choice stay valid.
    for name, before in (("decay", "none"), ("share", 1.0)):
        if settings[name] == before:
            del settings[name]
    if config.protocol == "seeds":  # more seeds leave those that are done as they are
        del settings["parts"]
    return settings
