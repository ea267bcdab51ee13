"""Transformer blocks over given vectors (Vaswani et al. 2017)."""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxemb.errors import InputError
from jaxemb.nn.dropout import Dropout

Activation = Literal["gelu", "gelu_tanh", "relu"]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": functools.partial(nn.gelu, approximate=False),
    "gelu_tanh": functools.partial(nn.gelu, approximate=True),
    "relu": nn.relu,
}


class Encoded(NamedTuple):
    """What a stack of blocks makes of its input; 0 at padding."""

    last: Any  # batch length dim: the output of the last layer
    states: tuple[Any, ...]  # the input, then every layer's output; `last` is the last


class SelfAttention(nn.Module):
    """Attention of words to words, in several heads side by side.

        A_h = softmax(Q_h K_h^T / sqrt(d))     output = W [A_1 V_1; ...; A_H V_H] + b

    with `Q = X W_q + b_q` and so on, d the width of a head; over real words, and if
    `causal` over those up to the word itself. On CPU the heads are matmuls; on
    accelerators `jax.nn.dot_product_attention` is called, whose kernel never makes A.
    Where A is asked for (`mutable="intermediates"`, under `attention`: batch heads
    queries keys) or dropped from, the heads are matmuls everywhere.
    """

    heads: int
    causal: bool = False
    dropout_rate: float = 0.0  # of A
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output; A is float32
    width: int | None = None  # of all heads together; that of the input unless given

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        deterministic: bool,
    ) -> Float[Array, "batch length dim"]:
        """The output of every word, in `dtype`."""
        batch, length, dim = inputs.shape
        width = dim if self.width is None else self.width
        if width % self.heads:
            raise InputError(
                f"SelfAttention.heads is {self.heads}; expected a divisor of {width}."
            )
        split = batch, length, self.heads, width // self.heads
        queries, keys, values = (
            nn.Dense(width, dtype=self.dtype, name=name)(inputs).reshape(split)
            for name in ("query", "key", "value")
        )
        seen = mask[:, None, None, :]  # batch heads queries keys
        if self.causal:
            seen = seen & jnp.tril(jnp.ones((length, length), bool))[None, None]
        drops = self.dropout_rate > 0 and not deterministic
        if drops or self.is_mutable_collection("intermediates"):
            weights = _weights(queries, keys, seen)
            self.sow("intermediates", "attention", weights)
            weights = Dropout(self.dropout_rate, name="dropout")(
                weights, deterministic=deterministic
            )
            mixed = _mixed(weights, values)
        else:
            mixed = jax.lax.platform_dependent(
                *(queries, keys, values, seen), cpu=_by_heads, default=_fused
            )
        return nn.Dense(dim, dtype=self.dtype, name="output")(
            mixed.reshape(batch, length, width)
        )


def _weights(queries: Array, keys: Array, seen: Array) -> Array:
    """The softmax over keys, in float32; a word that sees none takes them all alike."""
    queries, keys = (jnp.swapaxes(x, 1, 2) for x in (queries, keys))
    scale = jnp.asarray(queries.shape[-1] ** -0.5, queries.dtype)
    scores = jnp.matmul(
        queries * scale,
        jnp.swapaxes(keys, 2, 3),
        preferred_element_type=jnp.float32,
    )
    return nn.softmax(jnp.where(seen, scores, jnp.finfo(jnp.float32).min), axis=-1)


def _mixed(weights: Array, values: Array) -> Array:
    mixed = jnp.matmul(weights.astype(values.dtype), jnp.swapaxes(values, 1, 2))
    return jnp.swapaxes(mixed, 1, 2)


def _by_heads(queries: Array, keys: Array, values: Array, seen: Array) -> Array:
    return _mixed(_weights(queries, keys, seen), values)


def _fused(queries: Array, keys: Array, values: Array, seen: Array) -> Array:
    shape = *seen.shape[:2], queries.shape[1], keys.shape[1]
    return jax.nn.dot_product_attention(
        queries, keys, values, mask=jnp.broadcast_to(seen, shape)
    )


class TransformerBlock(nn.Module):
    """Attention and a network of two layers, each added to its input.

        F(x) = W2 activation(W1 x + b1) + b2
        after ("post-LN"):  x = norm(x + attention(x))   x = norm(x + F(x))
        before ("pre-LN"):  x = x + attention(norm(x))   x = x + F(norm(x))

    Dropout is on what is added, and on attention.
    """

    heads: int
    inner: int  # width of W1
    activation: Activation = "gelu"
    pre_norm: bool = False
    causal: bool = False
    dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    epsilon: float = 1e-12  # of the norms
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output
    width: int | None = None  # of all heads together; that of the input unless given

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        deterministic: bool,
    ) -> Float[Array, "batch length dim"]:
        """The output of every word, in `dtype`."""
        dropout = Dropout(self.dropout_rate, name="dropout")
        attention = SelfAttention(
            self.heads,
            self.causal,
            self.attention_dropout_rate,
            self.dtype,
            self.width,
            name="attention",
        )
        first = nn.Dense(self.inner, dtype=self.dtype, name="inner")
        second = nn.Dense(inputs.shape[-1], dtype=self.dtype, name="outer")
        x = inputs.astype(self.dtype)
        for name, part in (
            ("attention_norm", lambda x: attention(x, mask, deterministic)),
            ("outer_norm", lambda x: second(ACTIVATIONS[self.activation](first(x)))),
        ):
            norm = layer_norm(self.epsilon, self.dtype, name)
            added = part(norm(x) if self.pre_norm else x)
            x = x + dropout(added, deterministic=deterministic)
            x = x if self.pre_norm else norm(x)
        return x


class Transformer(nn.Module):
    """Blocks one after the other; with `pre_norm` a norm after the last.

    Every layer's output is returned; what is not used costs nothing under `jit`.
    """

    layers: int
    heads: int
    inner: int  # width of the network in each block
    activation: Activation = "gelu"
    pre_norm: bool = False
    causal: bool = False
    dropout_rate: float = 0.1
    attention_dropout_rate: float = 0.1
    epsilon: float = 1e-12
    dtype: jax.typing.DTypeLike = jnp.float32  # of matmuls and output
    remat: bool = False  # compute a block anew on the way back, to save memory
    scan: bool = False  # one compiled block; parameters are stacked: `stack_layers`
    kept_heads: tuple[int, ...] = ()  # of each layer, where some of `heads` are removed

    @nn.compact
    def __call__(
        self,
        inputs: Float[Array, "batch length dim"],
        mask: Bool[Array, "batch length"],
        *,
        deterministic: bool,
    ) -> Encoded:
        """All states, in `dtype`."""
        kind = TransformerBlock
        if self.remat:
            kind = nn.remat(kind, static_argnums=(3,), prevent_cse=not self.scan)
        if self.kept_heads and (self.scan or len(self.kept_heads) != self.layers):
            raise InputError(
                f"Transformer.kept_heads is {self.kept_heads}; expected a number for "
                f"each of {self.layers} layers, and no scan."
            )
        block = functools.partial(
            kind,
            inner=self.inner,
            activation=self.activation,
            pre_norm=self.pre_norm,
            causal=self.causal,
            dropout_rate=self.dropout_rate,
            attention_dropout_rate=self.attention_dropout_rate,
            epsilon=self.epsilon,
            dtype=self.dtype,
        )
        # Zeros at padding: 0 * NaN in the weights' gradient would be NaN.
        x = jnp.where(mask[..., None], inputs, 0).astype(self.dtype)
        states = [x]
        if self.scan:
            layers = block(heads=self.heads, name="layers")
            states += list(self._scanned(layers, x, mask, deterministic))
        else:
            for i in range(self.layers):
                layer = block(**self._heads_of(i, x.shape[-1]), name=f"layer_{i}")
                states.append(layer(states[-1], mask, deterministic))
        if self.pre_norm:
            states[-1] = layer_norm(self.epsilon, self.dtype, "norm")(states[-1])
        states = tuple(jnp.where(mask[..., None], state, 0) for state in states)
        return Encoded(states[-1], states)

    def _heads_of(self, layer: int, dim: int) -> dict[str, int]:
        if not self.kept_heads:
            return {"heads": self.heads}
        kept = self.kept_heads[layer]
        return {"heads": kept, "width": kept * (dim // self.heads)}

    def _scanned(self, block, x: Array, mask: Array, deterministic: bool) -> Array:
        def step(block, x):
            x = block(x, mask, deterministic)
            return x, x

        run = nn.scan(
            step,
            variable_axes={"params": 0, "intermediates": 0},
            split_rngs={"params": True, "dropout": True},
            length=self.layers,
        )
        return run(block, x)[1]


def layer_norm(epsilon: float, dtype: jax.typing.DTypeLike, name: str) -> nn.LayerNorm:
    """`scale (x - mean) / sqrt(variance + epsilon) + bias`, with the exact variance."""
    return nn.LayerNorm(
        epsilon=epsilon, dtype=dtype, use_fast_variance=False, name=name
    )


def stack_layers(params: Any, layers: int) -> Any:
    """Parameters of a `Transformer` for one with `scan`."""
    kept = {k: v for k, v in params.items() if not k.startswith("layer_")}
    each = [params[f"layer_{i}"] for i in range(layers)]
    return {**kept, "layers": jax.tree.map(lambda *x: jnp.stack(x), *each)}


def unstack_layers(params: Any, layers: int) -> Any:
    """Parameters of a `Transformer` with `scan` for one without."""
    kept = {k: v for k, v in params.items() if k != "layers"}
    each = {
        f"layer_{i}": jax.tree.map(lambda x, i=i: x[i], params["layers"])
        for i in range(layers)
    }
    return {**kept, **each}


def sinusoids(
    length: int, dim: int, dtype: jax.typing.DTypeLike = jnp.float32
) -> Float[Array, "length dim"]:
    """The positions of Vaswani et al., sines in even columns and cosines in odd ones.

    `sin(p / 10000^(2i/dim))` in column 2i, the cosine of the same in column 2i + 1.
    """
    rates = 10_000.0 ** (-jnp.arange(0, dim, 2) / dim)
    angles = jnp.arange(length)[:, None] * rates[None]
    both = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return both.reshape(length, -1)[:, :dim].astype(dtype)
