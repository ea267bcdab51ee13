"""Pretrained text encoders: weights and tokenizers of others, without their libraries.

Load a folder as the transformers library saves it, and compare sentences:

    from jaxemb import pretrained

    bert = pretrained.load_hf("all-MiniLM-L6-v2")
    vectors = pretrained.encode_texts(bert, ["A dog runs.", "A hound is running."])
    print(vectors @ vectors.T)

Tune a classifier of texts, and save its encoder for others:

    import dataclasses, jax, numpy as np
    from jaxemb import losses, nn, optim, train
    from jaxemb.data import batching

    texts, labels = ["A fine film.", "A dull film."] * 16, np.array([1, 0] * 16)
    columns = pretrained.Cutter.of(bert).texts(texts).columns()
    batches = batching.Shuffled(columns | {"labels": labels}, batch_size=8, seed=0)
    model = nn.SequenceClassifier(classes=2, config=bert.config)

    def loss(variables, batch, key):
        inputs, rngs = [batch[name] for name in columns], {"dropout": key}
        logits = model.apply(variables, *inputs, deterministic=False, rngs=rngs)
        return losses.softmax_cross_entropy(logits, batch["labels"]).mean(), {}

    tx = optim.bert_adam(optim.warmup_linear(5e-5, warmup_steps=2, num_steps=20))
    variables = pretrained.variables_above(bert, model, jax.random.key(0))
    state = train.State.create(variables, tx, jax.random.key(1))
    state = train.fit(state, train.make_step(loss, tx), batches, 20, "runs/tuned")
    tuned = dataclasses.replace(bert, params=state.params["encoder"])
    pretrained.save_hf("tuned", tuned)
"""

from jaxemb.pretrained.compact import without_heads, without_rows
from jaxemb.pretrained.features import FeatureCache, cache_features
from jaxemb.pretrained.huggingface import (
    Pretrained,
    load_hf,
    masked_lm_params,
    save_hf,
)
from jaxemb.pretrained.masking import Hidden, chosen_places, mlm_mask
from jaxemb.pretrained.sentences import encode_texts
from jaxemb.pretrained.tables import token_table, type_averages
from jaxemb.pretrained.tokens import (
    Cutter,
    LikeLengths,
    Pieces,
    Window,
    by_length,
    padded,
    windows,
)
from jaxemb.pretrained.tuning import variables_above

__all__ = [
    "Cutter",
    "FeatureCache",
    "Hidden",
    "LikeLengths",
    "Pieces",
    "Pretrained",
    "Window",
    "by_length",
    "cache_features",
    "chosen_places",
    "encode_texts",
    "load_hf",
    "masked_lm_params",
    "mlm_mask",
    "padded",
    "save_hf",
    "token_table",
    "type_averages",
    "variables_above",
    "windows",
    "without_heads",
    "without_rows",
]
