"""The paper's systems as the experiment assembles them.

Checks of the card's section 10: 1, 4, 6, 7, 9 and 11 are in
tests/perturb/test_objective.py, 2, 3 and 5 in tests/perturb/test_ascent.py, 8 in
tests/losses/test_distances.py, 10 in tests/eval/test_questions.py; 12 is the preset
`mctaco`.
"""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from etils import epath

from experiments.alice import config as presets
from experiments.alice import data, main, model, tuning
from experiments.common import cli
from jaxemb import optim, train
from jaxemb.data import sources
from jaxemb.data.commonsense import Candidate, Choice
from jaxemb.errors import InputError


def config_of(preset, *arguments):
    return cli.parse(presets.SLUG, presets.PRESETS, [preset, *arguments])


def made(task):
    config = config_of("smoke", "--batch-size", "8")
    config = dataclasses.replace(config, head_dropout=0.0)
    loaded = data.load(config, task)
    return model.Classifier(config, loaded), loaded, config


@pytest.fixture(scope="module")
def pairs():
    return made("planted pairs")


@pytest.fixture(scope="module", params=["planted pairs", "planted choices"])
def tuner(request, pairs):
    return pairs if request.param == "planted pairs" else made(request.param)


def batch_of(tuner, loaded):
    columns = loaded.pool.columns
    batch = next(data.batching.in_order(columns, 8, loaded.buckets))
    return jax.tree.map(jnp.asarray, tuner.batch(batch))


def test_texts_of_every_task():
    asked = Candidate("He ran.", "How long?", "an hour", 1, "Event Duration")
    assert data.texts_of(asked) == [("He ran.", "How long? an hour")]
    of = lambda passage, question: data.texts_of(
        Choice("1", passage, question, ("a", "b"), 0)
    )
    assert of("", "") == ["a", "b"]
    assert of("", "Why?") == [("Why?", "a"), ("Why?", "b")]
    assert of("It rained.", "Why?") == [
        ("It rained.", "Why? a"),
        ("It rained.", "Why? b"),
    ]


def test_no_question_is_on_two_sides(tuner):
    _, loaded, config = tuner
    sides = [loaded.split(config, seed) for seed in range(5)]
    held = collections.Counter()
    for train_part, dev in sides:
        groups = [{data._group(e) for e in part.examples} for part in (train_part, dev)]
        assert not groups[0] & groups[1]
        held.update(groups[1])
    every = {data._group(e) for e in loaded.pool.examples}
    assert held == dict.fromkeys(every, 1)  # each is held out by one of five seeds
    some = dataclasses.replace(config, examples=9)
    small, _ = loaded.split(some, 0)
    assert 4 < len(small.examples) <= 9
    again, _ = loaded.split(some, 0)
    assert small.examples == again.examples
    assert small.examples != loaded.split(some, 1)[0].examples


def test_rows_that_are_left_out_change_no_state(bert):
    kept = np.array([0, 2, 3, 6, 8])
    trimmed = data._trimmed(bert, 1, kept)
    assert trimmed.config.vocab == 5
    assert trimmed.config.layers == 1
    ids = jnp.array([[1, 3, 2]])
    small = trimmed.module().apply(
        {"params": trimmed.params}, ids, ids > 0, deterministic=True
    )
    whole = bert.module().apply(
        {"params": bert.params}, jnp.asarray(kept)[ids], ids > 0, deterministic=True
    )
    np.testing.assert_allclose(small.last, whole.states[1], atol=1e-5)
    with pytest.raises(InputError, match="--layers 3: expected 1 to 2"):
        data._trimmed(bert, 3, kept)


def test_systems_differ_only_in_their_terms(tuner):
    own, loaded, config = tuner
    batch, variables = batch_of(own, loaded), own.variables(0)
    key = jax.random.key(5)
    terms = {}
    for system in ("plain", "ADV", "SMART", "ALICE"):
        terms[system] = jax.jit(own.loss(system))(variables, batch, key)
    names = lambda s: {n for n in terms[s][1] if not n.endswith("ratio")}
    assert names("plain") == {"clean"}
    assert names("ADV") == {"labelled"}
    assert names("SMART") == {"clean", "virtual"}
    assert names("ALICE") == {"labelled", "virtual"}
    value = lambda s, name: float(terms[s][1][name])
    assert value("SMART", "clean") == pytest.approx(value("plain", "clean"), rel=1e-5)
    assert value("ALICE", "labelled") == pytest.approx(
        value("ADV", "labelled"), rel=1e-5
    )
    assert value("ADV", "labelled") > value("plain", "clean")


def test_the_bregman_term_pulls_to_averaged_parameters(pairs):
    own, loaded, config = pairs
    batch = jax.tree.map(np.asarray, batch_of(own, loaded))
    tx = own.optimizer("SMART+Bregman", 1e-2, 4, 4)
    step = own.step("SMART+Bregman", tx)
    state = train.State.create(own.variables(0), tx, jax.random.key(1))
    run = jax.jit(step)
    values, averages = [], [state.params]
    decay = config.perturbation.decay
    for _ in range(3):
        state, metrics = run(state, batch)
        values.append(float(metrics["proximal"]))
        averages.append(
            jax.tree.map(
                lambda a, p: decay * a + (1 - decay) * p, averages[-1], state.params
            )
        )
    assert values[0] < 1e-6 < values[2]  # the first step is at the average itself
    found = optim.ema_params(state.opt_state)
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5)
    jax.tree.map(close, found, averages[-1])
    assert not state.frozen


def test_scores_of_known_predictions(tuner, monkeypatch):
    own, loaded, _ = tuner
    labels = np.asarray(loaded.test.columns["labels"])
    monkeypatch.setattr(own, "predictions", lambda variables, part: labels)
    assert set(own.scores(None, loaded.test).values()) == {100.0}
    monkeypatch.setattr(own, "predictions", lambda variables, part: 1 - labels)
    assert next(iter(own.scores(None, loaded.test).values())) == 0.0


def test_rates_in_the_state_are_those_of_the_schedule():
    schedule = optim.warmup_linear(0.1, 2, 5)
    wanted = optax.scale_by_learning_rate(schedule)
    params = {"w": jnp.ones(3)}
    own = model.scale_by_rates(schedule, 5, 8)
    states, updates = [t.init(params) for t in (own, wanted)], {"w": jnp.arange(3.0)}
    for _ in range(8):
        found, states[0] = own.update(updates, states[0])
        right, states[1] = wanted.update(updates, states[1])
        np.testing.assert_allclose(found["w"], right["w"], rtol=1e-6)


def test_a_radius_in_the_state_is_the_objectives(pairs):
    """So that one program serves all radii of a grid."""
    own, loaded, config = pairs
    batch, variables, key = batch_of(own, loaded), own.variables(0), jax.random.key(5)
    run = jax.jit(own.loss("ALICE"))
    within = {**variables, model.BALL: {"epsilon": jnp.asarray(0.05)}}
    wide = dataclasses.replace(config, perturbation=config.perturbation.at(0.05))
    other = model.Classifier(wide, loaded)
    value, terms = run(within, batch, key)
    wanted, _ = jax.jit(other.loss("ALICE"))(variables, batch, key)
    assert float(value) == pytest.approx(float(wanted), rel=1e-5)
    assert float(value) != pytest.approx(float(run(variables, batch, key)[0]), rel=1e-4)


@pytest.mark.slow
def test_runs_are_chosen_kept_and_never_taken_for_others(tmp_path, monkeypatch):
    """The grid looks at what is held out only; what is there is of the same config."""
    config = config_of(
        "smoke",
        *("--grid.learning-rates", "1e-4", "1e-2", "--grid.examples", "40"),
        *("--epochs", "1", "--workdir", str(tmp_path), "--no-progress"),
    )
    loaded = data.load(config, "planted pairs")
    with monkeypatch.context() as blind:
        seen = []
        scores = model.Classifier.scores
        blind.setattr(
            model.Classifier,
            "scores",
            lambda own, v, part: seen.append(part) or scores(own, v, part),
        )
        tuner, setting, tried, _ = tuning.choose(config, loaded, epath.Path(tmp_path))
        assert loaded.test.examples not in [part.examples for part in seen]
    rates = {f"plain, 16 at {r:g}": r for r in (1e-4, 1e-2)}
    assert setting.learning_rate == rates[max(rates, key=lambda name: tried[name])]
    radii = {n: float(n.split()[-1]) for n in tried if n.startswith("ALICE")}
    assert sorted(radii.values()) == [1e-2, 2e-2]
    assert setting.epsilon == radii[max(radii, key=lambda name: tried[name])]
    kept = tuner.measured("plain", 0, setting)
    assert set(kept.dev) == set(kept.scores)
    assert not (tuner.folder("plain", 0) / "checkpoints").exists()
    fitted = []
    monkeypatch.setattr(tuning.Tuner, "_fit", lambda *a, **k: fitted.append(a))
    assert tuner.measured("plain", 0, setting) == kept
    assert not fitted
    for changed, name in (
        (dataclasses.replace(config, clip_norm=2.0), "clip_norm"),
        (dataclasses.replace(config, robustness=presets.Robustness()), "robustness"),
    ):
        other = tuning.Tuner(changed, loaded, epath.Path(tmp_path))
        with pytest.raises(InputError, match=f"holds a run with {name}"):
            other.measured("plain", 0, setting)
    with pytest.raises(InputError, match="holds a run with learning_rate"):
        tuner.measured("plain", 0, setting._replace(learning_rate=3e-2))


def test_a_swept_radius_has_rows_of_its_own(tmp_path, monkeypatch):
    config = config_of("smoke", "--sweep", "1e-3", "--tasks", "planted pairs")
    measured = tuning.Measured(
        {"exact match (%)": 1.0, "F1 (%)": 2.0},
        {"exact match (%)": 1.0, "F1 (%)": 2.0},
        {n: [0.0] * 3 for n in ("accuracy", "loss", "divergence", "ratio")},
        [0.0] * len(model.LINE),
        {},
        1.0,
    )
    asked = []
    monkeypatch.setattr(
        tuning.Tuner, "measured", lambda own, *a: asked.append(a) or measured
    )
    monkeypatch.setattr(tuning.Tuner, "dev_score", lambda own, *a: 0.0)
    monkeypatch.setattr(tuning.Tuner, "step_seconds", lambda own, *a: 1.0)
    run = dataclasses.replace(config.run, workdir=str(tmp_path))
    rows = main.run(dataclasses.replace(config, run=run))["rows"]
    assert {a[2].epsilon for a in asked} == {1e-2, 1e-3}
    swept = [r for r in rows if r["metric"].endswith("ALICE by its radius")]
    assert {(r["name"], r["measured"]) for r in swept} == {
        ("ε = 0.001", 1.0),
        ("ε = 0.001", 2.0),
    }


def test_mistakes_are_named():
    with pytest.raises(InputError, match="--seeds 0: expected 1 or more"):
        config_of("mctaco", "--seeds", "0").check()
    with pytest.raises(InputError, match="--encoder planted: expected planted tasks"):
        config_of("mctaco", "--encoder", "planted").check()
    with pytest.raises(InputError, match="--warm-up 1.0: expected 0 up to 1"):
        config_of("mctaco", "--warm-up", "1").check()
    with pytest.raises(InputError, match="expected 1 among them"):
        config_of("mctaco", "--robustness.radii", "3").check()
    with pytest.raises(InputError, match="expected ALICE among --systems"):
        config_of("mctaco", "--systems", "plain").check()


@pytest.mark.data
def test_mctaco_is_cut_as_the_readme_tells():
    for name in ("mctaco", "minilm"):
        if sources.locate(name) is None:
            pytest.skip(f"needs {name}")
    config = config_of("mctaco")
    loaded = data.load(config, "mctaco")
    training, dev = loaded.split(config, 0)
    assert 1480 < len(training.examples) <= 1500
    assert 280 < len(dev.examples) <= 300
    assert len(loaded.test.examples) == 9442
    assert max(loaded.buckets) <= 48


@pytest.mark.data
def test_the_first_state_depends_on_the_text():
    """What the head reads has to differ between texts, or no change can be seen."""
    for name in ("comve", "minilm"):
        if sources.locate(name) is None:
            pytest.skip(f"needs {name}")
    config = config_of("comve", "--test-examples", "32")
    spread = {}
    for layers in (3, config.layers):
        loaded = data.load(dataclasses.replace(config, layers=layers), "comve")
        columns = {k: v for k, v in loaded.test.columns.items() if k.endswith("_0")}
        batch = next(data.batching.in_order(columns, 32, (32,)))
        encoded = loaded.encoder.module().apply(
            {"params": loaded.encoder.params},
            jnp.asarray(batch["ids_0"]),
            jnp.asarray(batch["mask_0"]),
            deterministic=True,
        )
        spread[layers] = float(jnp.std(encoded.last[:, 0], axis=0).mean())
    assert spread[3] < 1e-2 < spread[config.layers]
