import importlib
import pathlib
import subprocess
import sys

import pytest

import jaxemb


def test_every_subpackage_is_advertised():
    """A new folder is reached as `jaxemb.<name>` too."""
    folder = pathlib.Path(jaxemb.__file__).parent
    there = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert there == jaxemb._SUBPACKAGES


def test_every_advertised_subpackage_is_there():
    for name in jaxemb._SUBPACKAGES:
        assert getattr(jaxemb, name).__name__ == f"jaxemb.{name}"
        assert name in dir(jaxemb)
    with pytest.raises(AttributeError, match="nothing"):
        jaxemb.nothing  # noqa: B018


@pytest.mark.parametrize("package", sorted(jaxemb._SUBPACKAGES))
def test_every_exported_name_is_there(package):
    module = importlib.import_module(f"jaxemb.{package}")
    assert module.__all__ and set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert hasattr(module, name), name


def test_parts_load_when_they_are_used():
    code = (
        "import sys, jaxemb\n"
        "jaxemb.eval.similarity.word_similarity\n"
        "assert jaxemb.eval.t_interval([1.0]).mean == 1.0\n"
        "assert jaxemb.analysis.nearest is jaxemb.analysis.delta.nearest\n"
        "assert not {'flax', 'matplotlib', 'orbax'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
