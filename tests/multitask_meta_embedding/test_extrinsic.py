"""Taggers and classifiers with reconstruction as an auxiliary loss, and their texts."""

import dataclasses

import numpy as np
from etils import epath

from experiments.common import cli
from experiments.multitask_meta_embedding import data, extrinsic, main, training
from experiments.multitask_meta_embedding.config import SMOKE
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
        folder = epath.Path(tmp_path / name)
        extrinsic.Trainer(config, texts, batches, "cnn", system).fit(folder)
        params = checkpoints.load_params(folder)["params"]
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
    trainer.fit(epath.Path(tmp_path / "run"))
    found = extrinsic._read(epath.Path(tmp_path / "run"), settings.seeds)
    assert found["dev"].shape == found["test"].shape == (2, 1)
    # Shares of 30 examples, those that only fill a batch up not among them.
    np.testing.assert_allclose(found["test"] * 0.3, np.round(found["test"] * 0.3))


def test_a_recipe_phrase_is_in_one_part_only():
    rng = np.random.default_rng(0)
    names = [f"{'Flour' if i % 2 else 'flour'}{rng.integers(60)}" for i in range(300)]
    rows = [recipes.RecipePhrase(("1", name), ("QUANTITY", "NAME")) for name in names]
    parts = data.split_phrases(rows)
    assert sum(map(len, parts.values())) == 300
    words = {part: {row.tokens[1].lower() for row in of} for part, of in parts.items()}
    assert len(words["train"] | words["dev"] | words["test"]) == 60
    assert [len(words[part]) for part in ("train", "dev", "test")] == [48, 6, 6]
