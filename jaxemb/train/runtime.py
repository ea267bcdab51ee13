"""Settings of the process that programs turn on and libraries leave alone."""

import ctypes
import logging
import sys

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
    shown = sys.unraisablehook

    def show(unraisable: "sys.UnraisableHookArgs") -> None:
        # A second array that fails after the first has ended a save: tensorstore's
        # thread reports it to an event loop that is closed by then.
        if str(unraisable.exc_value) != "Event loop is closed":
            shown(unraisable)

    sys.unraisablehook = show


# Of glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_RESERVE = 1 << 28


def keep_freed_memory() -> bool:
    """Lets the process reuse large blocks of memory instead of returning them.

    XLA on CPU takes the temporary arrays of each step from `malloc`. glibc gives blocks
    of a table's size back to the system and has the next step fault every page in anew,
    which can cost as much as the step itself. The process's memory then stays at its
    peak.

    Returns:
      Whether this C library has the settings.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    wanted = (
        (_MMAP_THRESHOLD, 1 << 30),
        (_TRIM_THRESHOLD, (1 << 31) - 1),
        (_TOP_PAD, _RESERVE),
        (_ARENA_MAX, 1),  # the heaps of further arenas are too small for such blocks
    )
    return all([mallopt(name, value) == 1 for name, value in wanted])
