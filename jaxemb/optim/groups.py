"""Groups of parameters, chosen by their paths."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxemb.errors import InputError

Where = str | Callable[[str], bool]
"""A regular expression for the whole path, or a function of the path.

The path of a parameter is its names joined by slashes: `encoder/forward/recurrent`.
"""


def by_path(*where: Where) -> Callable[[Any], Any]:
    """A mask for `optax.masked`: True at the parameters that any of `where` chooses.

    Example:
      `optax.masked(optax.add_decayed_weights(1e-4), by_path(".*/kernel"))`

    Raises:
      InputError: when the mask is made, if one of `where` chooses no parameter.
    """
    if not where:
        raise InputError("by_path got no pattern; expected at least one.")

    def mask(params: Any) -> Any:
        chosen = [_choose(params, w) for w in where]
        return jax.tree.map(lambda *hits: any(hits), *chosen)

    return mask


def label_by_path(
    labels: Mapping[str, Where], *, default: str | None = None
) -> Callable[[Any], Any]:
    """Labels for `optax.multi_transform`: the first that chooses a parameter.

    Args:
      labels: from a label to what chooses its parameters, the most special first.
      default: the label of parameters that nothing chooses; None makes them an error.

    Raises:
      InputError: when the labels are made, if one of them chooses no parameter, or a
        parameter is left without a label.
    """

    def label(params: Any) -> Any:
        chosen = [_choose(params, where) for where in labels.values()]

        def first(path, *hits):
            for name, hit in zip(labels, hits, strict=True):
                if hit:
                    return name
            if default is None:
                raise InputError(
                    f"Parameter {path_name(path)} matches none of the labels "
                    f"{sorted(labels)}; expected a match or a default label."
                )
            return default

        return (
            jax.tree_util.tree_map_with_path(first, *chosen)
            if chosen
            else (jax.tree.map(lambda _: default, params))
        )

    return label


def _choose(params: Any, where: Where) -> Any:
    if isinstance(where, str):
        pattern = re.compile(where)
        matches = lambda path: pattern.fullmatch(path) is not None  # noqa: E731
    else:
        matches = where
    chosen = jax.tree_util.tree_map_with_path(
        lambda path, _: bool(matches(path_name(path))), params
    )
    if not any(jax.tree.leaves(chosen)):
        paths = [
            path_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)
        ]
        raise InputError(
            f"{where!r} matches no parameter; expected one of {', '.join(paths)}."
        )
    return chosen


def path_name(path: Any) -> str:
    """As `by_path` matches it: names joined by slashes."""
    return jax.tree_util.keystr(path, simple=True, separator="/")
