"""Taggers and classifiers with reconstruction as an auxiliary loss, and their texts."""

import dataclasses

import numpy as np
import pytest
from etils import epath
from scipy import stats

from experiments.common import cli
from experiments.multitask_meta_embedding import data, extrinsic, main, training
from experiments.multitask_meta_embedding.config import SMOKE
from jaxemb import train
from jaxemb.data import recipes
from jaxemb.train import checkpoints


def test_a_run_of_before_is_found_again():
    """What claims a folder has no field of which nobody made use."""
    assert "hold_outs" not in main._deciding(SMOKE)["multitask"]
    settings = dataclasses.replace(SMOKE.multitask, hold_outs=("A",))
    config = dataclasses.replace(SMOKE, multitask=settings)
    assert main._deciding(config)["multitask"]["hold_outs"] == ["A"]


def test_batches_show_every_pair_and_are_full():
    rows = training._epoch_rows(10, 4, 0)
    assert rows.shape == (3, 4)
    assert set(rows.ravel()) == set(range(10))
    assert not np.array_equal(rows, training._epoch_rows(10, 4, 1))


def test_the_rows_of_a_batch_are_the_vectors_of_its_words():
    texts = data.load_texts(SMOKE, "pos")
    batches = extrinsic.Batches(texts, SMOKE)
    table = texts.ensemble.concatenate().astype(np.float32)
    plan = batches.train(table, texts.ensemble.known)
    for step in (0, 1):
        batch, plain = plan(step), batches.plan(step)
        np.testing.assert_array_equal(
            batch["sources"][batch["ids"]], table[plain["tokens"]]
        )
        np.testing.assert_array_equal(batch["mask"], plain["tokens"] > 0)
        np.testing.assert_array_equal(batch["labels"], plain["labels"])
    seen = sum(
        int(b["weight"].sum()) for b in batches.held_out("dev", table, table > 0)
    )
    assert seen == len(texts.parts["dev"]["tokens"])


def test_the_control_has_no_weight_and_meta_has_one(tmp_path):
    """What would reconstruct is as it began in the one, and learned in the other."""
    settings = dataclasses.replace(SMOKE.extrinsic, epochs=1)
    config = dataclasses.replace(
        SMOKE, extrinsic=settings, run=cli.Run(workdir=str(tmp_path), progress=False)
    )
    texts = data.load_texts(config, "pos")
    batches = extrinsic.Batches(texts, config)
    biases = {}
    for name, system in (("control", extrinsic.CONTROL), ("meta", extrinsic.META)):
        folder = tmp_path / name
        trainer = extrinsic.Trainer(config, texts, batches, "cnn", system)
        trainer.fit(folder, [(0, 1e-2), (1, 1e-2)])
        params = checkpoints.load_params(epath.Path(folder))["params"]
        biases[name] = params["meta"]["decode"]["bias"]
    assert (biases["control"] == 0).all()
    assert (biases["meta"] != 0).any(axis=-1).all()  # of every seed


def test_reviews_are_classified_with_their_mean_reconstructed(tmp_path):
    settings = dataclasses.replace(
        SMOKE.extrinsic, encoders=("gru",), meta=(8, 6), level="text", epochs=1
    )
    config = dataclasses.replace(
        SMOKE, extrinsic=settings, run=cli.Run(workdir=str(tmp_path), progress=False)
    )
    texts = data.load_texts(config, "imdb")
    batches = extrinsic.Batches(texts, config)
    trainer = extrinsic.Trainer(config, texts, batches, "gru", extrinsic.META)
    found = trainer.fit(tmp_path / "run", [(0, 1e-2), (1, 1e-2)])
    assert found.dev_by_epoch.shape == (2, 1)
    # Shares of 30 examples, those that only fill a batch up not among them.
    np.testing.assert_array_equal(found.labels, np.ones(30))
    np.testing.assert_allclose(found.test, 100 * found.right.sum(axis=1) / 30)
    [line] = train.evaluations(epath.Path(tmp_path / "run"), "test/accuracy")
    told = [line[f"test/accuracy/{seed}"] for seed in range(2)]
    np.testing.assert_allclose(found.test, told)


def test_the_rate_is_chosen_on_dev_and_shared_by_the_control(monkeypatch, tmp_path):
    """Training is replaced: what is best on dev is a rate of each system's own."""
    best = {"meta": 3e-3, "control": 1e-2, "other": 1e-2}
    asked = []

    def fit(self, folder, runs):
        system = self._name.split("/", 2)[2]
        kind = {extrinsic.META: "meta", extrinsic.CONTROL: "control"}
        wanted = best[kind.get(system, "other")]
        asked.append((system, runs))
        dev = np.array([[80.0 + (rate == wanted)] for _, rate in runs])
        labels = np.full(4, 10)
        right = np.full((len(runs), 4), 8)
        return extrinsic.Trained(dev, dev[:, 0], 100 - dev[:, 0], right, labels)

    monkeypatch.setattr(extrinsic.Trainer, "fit", fit)
    monkeypatch.setattr(extrinsic._Analysis, "write_figures", lambda *_: None)
    outcome = extrinsic.run(SMOKE, "pos", tmp_path)
    texts = data.load_texts(SMOKE, "pos")
    tries = [(0, 3e-3), (0, 1e-2)]
    for system in extrinsic.systems(texts):
        own = [runs for name, runs in asked if name == system]
        rate = 3e-3 if system in (extrinsic.META, extrinsic.CONTROL) else 1e-2
        chosen = [(0, rate), (1, rate)]
        assert own == ([chosen] if system == extrinsic.CONTROL else [tries, chosen])
        assert outcome.told["UDPoS, learning rate"][f"CNN, {system}"] == rate


def test_what_is_read_has_numbers_of_variance_1():
    texts = data.load_texts(SMOKE, "pos")
    batches = extrinsic.Batches(texts, SMOKE)
    for system in extrinsic.systems(texts):
        trainer = extrinsic.Trainer(SMOKE, texts, batches, "cnn", system)
        rows = trainer._table[trainer._known.all(axis=1)]
        assert np.mean(np.square(rows)) == pytest.approx(1, rel=1e-5)


def trained(right, dev=None):
    """Seeds that have so many labels right in each of some examples of 10 labels."""
    right = np.asarray(right)
    labels = np.full(right.shape[1], 10)
    test = 100 * right.sum(axis=1) / labels.sum()
    dev = test if dev is None else np.asarray(dev)
    return extrinsic.Trained(dev[:, None], dev, test, right, labels)


def analysis_of(of, resamples=400):
    config = dataclasses.replace(SMOKE, resamples=resamples)
    texts = data.load_texts(config, "pos")
    return extrinsic._Analysis(config, "pos", texts, of)


def test_a_claim_is_uncertain_by_examples_and_by_seeds():
    rng = np.random.default_rng(0)
    base = rng.integers(3, 6, (5, 400))
    meta, worse = trained(base + rng.integers(0, 3, (5, 400))), trained(base)
    one = analysis_of({})
    claim = one._claim("a beats b", meta, worse)
    assert (claim.claim, claim.verdict) == ("a beats b", "supported")
    assert "over 400 test examples and over 5 seeds" in claim.evidence
    assert one._claim("b beats a", worse, meta).verdict == "contradicted"
    # Seeds that agree about a few examples: they say nothing of other examples.
    lucky = base.copy()
    lucky[:, :3] += 1
    gap = stats.ttest_rel(trained(lucky).test, worse.test).confidence_interval()
    assert gap.low > 0
    few = one._claim("c beats b", trained(lucky), worse)
    assert few.verdict == "inconclusive"
    # Half-widths add by squares.
    low, high = map(float, claim.evidence.split("[")[1].split("]")[0].split(","))
    gaps = 10 * (meta.right - worse.right).mean(axis=0)
    by_items = stats.bootstrap(
        (gaps,), np.mean, n_resamples=2000, method="percentile", rng=0
    ).confidence_interval
    by_seeds = stats.ttest_rel(meta.test, worse.test).confidence_interval()
    mean = gaps.mean()
    expected = np.hypot(mean - by_items.low, mean - by_seeds.low)
    assert mean - low == pytest.approx(expected, rel=0.1)
    expected = np.hypot(by_items.high - mean, by_seeds.high - mean)
    assert high - mean == pytest.approx(expected, rel=0.1)


def test_claims_are_of_the_right_systems():
    rng = np.random.default_rng(1)
    texts = data.load_texts(SMOKE, "pos")
    names = texts.ensemble.names
    level = {names[0]: 3, names[1]: 5, extrinsic.CONC: 6, extrinsic.CONTROL: 7}
    level = {**dict.fromkeys(names, 2), **level, extrinsic.META: 8}
    of = {s: trained(n + rng.integers(0, 2, (3, 90))) for s, n in level.items()}
    lower = {s: trained(one.right - 2) for s, one in of.items()}
    found = analysis_of({"cnn": lower, "lstm": of, "gru": lower, "highway": of})
    claims = {c.claim: c for c in found.claims()}
    best = f"reconstruction with all sources beats the best source ({names[1]}): UDPoS"
    gaps = {
        f"{best}, CNN": 30,
        "control: it beats all sources side by side (CONC): UDPoS, LSTM": 20,
        "control: it beats the same without reconstruction (λ = 0): UDPoS, GRU": 10,
        "the LSTM is the best model: UDPoS, over CNN": 20,
    }
    for text, gap in gaps.items():
        assert claims[text].verdict == "supported"
        told = float(claims[text].evidence.split()[1])
        assert told == pytest.approx(gap, abs=1.5)
    even = claims["the LSTM is the best model: UDPoS, over Highway"]
    assert even.verdict == "inconclusive"


def test_faster_is_nearer_its_own_best_early():
    """Whatever the level; and steadier is of less variance at the end."""
    rng = np.random.default_rng(2)
    epochs = np.linspace(0, 1, 10)
    noise = rng.normal(size=(4, 10))

    def curves(level, way, scale):
        dev = level - way * (1 - epochs) + scale * noise
        right = rng.integers(3, 6, (4, 20))
        return dataclasses.replace(trained(right, dev[:, -1]), dev_by_epoch=dev)

    slow, fast = curves(90, 20, 0.3), curves(80, 2, 0.001)
    names = data.load_texts(SMOKE, "pos").ensemble.names
    others = dict.fromkeys((*names, extrinsic.CONC, extrinsic.CONTROL), slow)
    config = dataclasses.replace(SMOKE.extrinsic, epochs=10)
    found = analysis_of({"lstm": {**others, extrinsic.META: fast}})
    found._config = dataclasses.replace(found._config, extrinsic=config)
    faster, steadier = [], []
    for claim in found._speed_claims():
        kind = faster if "faster" in claim.claim else steadier
        kind.append(claim.verdict)
    assert faster == ["supported"] * 3 and steadier == ["supported"] * 2


def test_a_recipe_phrase_is_in_one_part_only():
    rng = np.random.default_rng(0)
    names = [f"{'Flour' if i % 2 else 'flour'}{rng.integers(60)}" for i in range(300)]
    rows = [recipes.RecipePhrase(("1", name), ("QUANTITY", "NAME")) for name in names]
    parts = data.split_phrases(rows)
    assert sum(map(len, parts.values())) == 300
    words = {part: {row.tokens[1].lower() for row in of} for part, of in parts.items()}
    assert len(words["train"] | words["dev"] | words["test"]) == 60
    assert [len(words[part]) for part in ("train", "dev", "test")] == [48, 6, 6]
