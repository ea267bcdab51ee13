"""Encoders beside those of transformers on torch, weights both ways."""

import dataclasses
import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import numpy as safetensors

from jaxemb import nn
from jaxemb.errors import InputError
from jaxemb.pretrained import load_hf, masked_lm_params, save_hf

torch = pytest.importorskip("torch", reason="the extra oracles holds torch")
transformers = pytest.importorskip("transformers", reason="the extra oracles")

IDS = np.random.default_rng(0).integers(5, 60, (4, 9))
LENGTHS = np.array([9, 4, 1, 7])
MASK = np.arange(9) < LENGTHS[:, None]
SEGMENTS = (np.arange(9) >= 3).astype(np.int32)[None].repeat(4, 0)


def theirs(kind):
    small = dict(vocab_size=61, max_position_embeddings=20)
    bert = dict(
        hidden_size=12, num_hidden_layers=3, num_attention_heads=3, intermediate_size=20
    )
    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(**small, **bert)
        model = transformers.BertModel(config)
    elif kind == "roberta":
        config = transformers.RobertaConfig(**small, **bert, type_vocab_size=1)
        model = transformers.RobertaModel(config)
    elif kind == "distilbert":
        config = transformers.DistilBertConfig(
            **small, dim=12, n_layers=3, n_heads=3, hidden_dim=20
        )
        model = transformers.DistilBertModel(config)
    else:
        config = transformers.GPT2Config(
            vocab_size=61, n_positions=20, n_embd=12, n_layer=3, n_head=3
        )
        model = transformers.GPT2Model(config)
    for parameter in model.parameters():  # biases and norms start at 0 and 1
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def outputs(model, kind, **options):
    inputs = dict(
        input_ids=torch.tensor(IDS), attention_mask=torch.tensor(MASK.astype(np.int64))
    )
    if kind == "bert":
        inputs["token_type_ids"] = torch.tensor(SEGMENTS)
    with torch.no_grad():
        return model(**inputs, output_hidden_states=True, **options)


def ours(loaded, kind, **settings):
    module = loaded.module(**settings)
    segments = jnp.asarray(SEGMENTS) if kind == "bert" else None
    return module, jax.jit(
        lambda params: module.apply(
            {"params": params},
            jnp.asarray(IDS),
            jnp.asarray(MASK),
            segments,
            deterministic=True,
        )
    )


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "gpt2"])
def test_states_are_those_of_transformers_both_ways(kind, tmp_path):
    model = theirs(kind)
    model.save_pretrained(tmp_path / "theirs")
    expected = outputs(model, kind)
    loaded = load_hf(tmp_path / "theirs")
    _, run = ours(loaded, kind)
    encoded = run(loaded.params)
    assert len(encoded.states) == len(expected.hidden_states) == 4
    for state, wanted in zip(encoded.states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(
            np.asarray(state)[MASK], wanted.numpy()[MASK], atol=1e-4
        )
    save_hf(tmp_path / "ours", loaded)
    again = type(model).from_pretrained(tmp_path / "ours").eval()
    np.testing.assert_array_equal(
        outputs(again, kind).last_hidden_state, expected.last_hidden_state
    )


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_attention_maps_and_the_pooler_are_those_of_transformers(kind, tmp_path):
    model = theirs(kind)
    model.set_attn_implementation("eager")
    model.save_pretrained(tmp_path)
    expected = outputs(model, kind, output_attentions=True)
    loaded = load_hf(tmp_path)
    module = loaded.module()
    encoded, kept = module.apply(
        {"params": loaded.params},
        *(jnp.asarray(IDS), jnp.asarray(MASK)),
        jnp.asarray(SEGMENTS) if kind == "bert" else None,
        deterministic=True,
        mutable="intermediates",
    )
    for i, wanted in enumerate(expected.attentions):
        blocks = kept["intermediates"]["blocks"]
        [weights] = blocks[f"layer_{i}"]["attention"]["attention"]
        real = MASK[:, None, :].repeat(3, 1)
        np.testing.assert_allclose(
            np.asarray(weights)[real], wanted.numpy()[real], atol=1e-5
        )
    if kind == "bert":
        pooled = module.apply({"params": loaded.params}, encoded, method="pooled")
        np.testing.assert_allclose(pooled, expected.pooler_output, atol=1e-5)


def test_heads_above_an_encoder_are_kept(tmp_path):
    config = theirs("bert").config
    model = transformers.BertForMaskedLM(config).eval()
    model.save_pretrained(tmp_path / "theirs")
    loaded = load_hf(tmp_path / "theirs")
    assert not loaded.config.pooler
    assert "cls.predictions.bias" in loaded.rest
    save_hf(tmp_path / "ours", loaded)
    again = transformers.BertForMaskedLM.from_pretrained(tmp_path / "ours").eval()
    np.testing.assert_array_equal(
        outputs(again, "bert").logits, outputs(model, "bert").logits
    )


def test_shards_archives_and_half_precision(tmp_path):
    model = theirs("bert")
    model.save_pretrained(tmp_path / "whole")
    whole = load_hf(tmp_path / "whole")
    model.save_pretrained(tmp_path / "shards", max_shard_size="3KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    archive = tmp_path / "a.whl"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in (tmp_path / "shards").iterdir():
            packed.write(path, f"inner/model/{path.name}")
    model.to(torch.bfloat16).save_pretrained(tmp_path / "half")
    for place, close in (
        (tmp_path / "shards", 0),
        (f"{archive}/inner/model", 0),
        (tmp_path / "half", 4e-3),
    ):
        found = load_hf(place)
        assert found.config == whole.config
        jax.tree.map(
            lambda a, b, close=close: np.testing.assert_allclose(a, b, rtol=close),
            found.params,
            whole.params,
        )
        assert {x.dtype for x in jax.tree.leaves(found.params)} == {np.dtype("f4")}


def test_what_does_not_fit_is_named_in_one_sentence(tmp_path):
    model = theirs("bert")
    model.save_pretrained(tmp_path)
    tensors = safetensors.load_file(tmp_path / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.bias"]
    tensors["encoder.layer.0.output.dense.bias"] = np.zeros(5, np.float32)
    tensors["encoder.layer.7.new"] = np.zeros(5, np.float32)
    safetensors.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InputError) as error:
        load_hf(tmp_path)
    told = str(error.value)
    assert "missing: encoder.layer.1.output.dense.bias" in told
    assert "of another shape: encoder.layer.0.output.dense.bias (5,)" in told
    assert "unknown: encoder.layer.7.new" in told
    assert "\n" not in told


def test_folders_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(InputError, match="config.json"):
        load_hf(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="model_type None"):
        load_hf(tmp_path)
    theirs("bert").config.save_pretrained(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="pickle"):
        load_hf(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a safetensors file"):
        load_hf(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_act": "silu"}))
    with pytest.raises(InputError, match="'silu'"):
        load_hf(tmp_path)


def test_saving_names_parameters_that_are_missing_or_too_many(tmp_path):
    theirs("distilbert").save_pretrained(tmp_path)
    loaded = load_hf(tmp_path)
    more = dataclasses.replace(loaded, params={**loaded.params, "new": {"a": 1.0}})
    with pytest.raises(InputError, match="new/a"):
        save_hf(tmp_path / "ours", more)
    fewer = {k: v for k, v in loaded.params.items() if k != "norm"}
    with pytest.raises(InputError, match="norm/scale"):
        save_hf(tmp_path / "ours", dataclasses.replace(loaded, params=fewer))


def dense(model, name):
    layer = model.get_submodule(name)
    weight, bias = (getattr(layer, k).detach().numpy() for k in ("weight", "bias"))
    return {"kernel": weight.T, "bias": bias}


@pytest.mark.parametrize("kind", ["text", "pieces", "choices"])
def test_heads_are_those_of_transformers(kind, tmp_path):
    config = theirs("bert").config
    config.num_labels = 3
    classes = {
        "text": transformers.BertForSequenceClassification,
        "pieces": transformers.BertForTokenClassification,
        "choices": transformers.BertForMultipleChoice,
    }
    model = classes[kind](config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path)
    bert = load_hf(tmp_path)
    arrays = [IDS, MASK, SEGMENTS]
    if kind == "choices":
        arrays = [x.reshape(2, 2, 9) for x in arrays]
    names = "input_ids", "attention_mask", "token_type_ids"
    with torch.no_grad():
        tensors = [torch.tensor(x.astype(np.int64)) for x in arrays]
        wanted = model(**dict(zip(names, tensors, strict=True))).logits.numpy()
    params = {"encoder": bert.params, "output": dense(model, "classifier")}
    module = {
        "text": nn.SequenceClassifier(3, bert.config),
        "pieces": nn.PieceClassifier(3, bert.config),
        "choices": nn.MultipleChoice(bert.config),
    }[kind]
    params = {"text": params} if kind == "choices" else params
    found = module.apply(
        {"params": params}, *map(jnp.asarray, arrays), deterministic=True
    )
    if kind == "pieces":
        found, wanted = np.asarray(found)[MASK], wanted[MASK]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_masked_pieces_are_scored_as_in_transformers(kind, tmp_path):
    classes = {
        "bert": transformers.BertForMaskedLM,
        "roberta": transformers.RobertaForMaskedLM,
        "distilbert": transformers.DistilBertForMaskedLM,
    }
    model = classes[kind](theirs(kind).config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(tmp_path)
    bert = load_hf(tmp_path)
    module = nn.MaskedLM(bert.config)
    segments = jnp.asarray(SEGMENTS) if kind == "bert" else None
    found = module.apply(
        {"params": masked_lm_params(bert)},
        *(jnp.asarray(IDS), jnp.asarray(MASK), segments),
        deterministic=True,
    )
    wanted = outputs(model, kind).logits.numpy()
    np.testing.assert_allclose(np.asarray(found)[MASK], wanted[MASK], atol=1e-4)


def test_next_pieces_are_scored_as_in_transformers(tmp_path):
    model = transformers.GPT2LMHeadModel(theirs("gpt2").config).eval()
    model.save_pretrained(tmp_path)
    gpt2 = load_hf(tmp_path)
    found = nn.CausalLM(gpt2.config).apply(
        {"params": {"encoder": gpt2.params}},
        *(jnp.asarray(IDS), jnp.asarray(MASK)),
        deterministic=True,
    )
    wanted = outputs(model, "gpt2").logits.numpy()
    np.testing.assert_allclose(np.asarray(found)[MASK], wanted[MASK], atol=1e-4)


def test_weights_without_a_language_model_are_named(tmp_path):
    theirs("bert").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="cls.predictions.bias"):
        masked_lm_params(load_hf(tmp_path))
