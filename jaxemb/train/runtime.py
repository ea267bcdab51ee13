"""Settings of the process that programs turn on and libraries leave alone."""

import logging

import jax

from jaxemb.data import files


def enable_compilation_cache() -> None:
    """Keeps compiled programs in the cache folder, for the next run of the same step.

    A folder set through `JAX_COMPILATION_CACHE_DIR` stays.
    """
    if jax.config.values["jax_compilation_cache_dir"] is None:
        folder = files.cache_dir() / "xla"
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def quiet_libraries() -> None:
    """Leaves out of standard error what arrives as an exception anyway."""
    for name in ("absl", "orbax", "asyncio", "jax"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
