"""Flags under which every test runs; set before jax is first imported."""

import ctypes
import gc
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "Agg")

from jaxtyping import install_import_hook

# Shapes are checked in tests only; the hook must see the modules' first import.
install_import_hook("jaxemb", "beartype.beartype")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

from jaxemb.data import files  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_compilation_cache_dir", str(files.cache_dir() / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# Two noisy cores: a slow example is no news, and the same examples run every time.
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci")

_MOST_MEMORY = 3 * 2**30


@pytest.fixture
def mesh():
    """Eight virtual devices on one data axis."""
    return jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


@pytest.fixture(autouse=True)
def _width_of_numbers():
    """No test leaves 64 bits on for those after it."""
    yield
    assert not jax.config.jax_enable_x64  # type: ignore[attr-defined]


@pytest.fixture(autouse=True, scope="module")
def _memory_of_programs():
    """Compiled programs are let go once they fill a worker; else it grows to 8 GB."""
    yield
    if not sys.platform.startswith("linux"):
        return
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    if pages * os.sysconf("SC_PAGE_SIZE") > _MOST_MEMORY:
        jax.clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session")
def bert():
    """A tiny pretrained encoder of 15 whole words that takes 12 pieces."""
    from tests import encoders

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = "A a dog runs hound is running fine dull film .".split()
    return encoders.tiny([*marks, *words], dim=8, layers=2, inner=16, positions=12)
