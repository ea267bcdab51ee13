"""Who may import whom; see the table below."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# Package to the other packages of the library that it may import.
ALLOWED = {
    "data": set(),
    "spaces": {"data"},
    "losses": {"numerics"},
    "perturb": {"numerics", "losses"},
    "nn": {"numerics", "losses"},
    "pretrained": {"data", "nn", "numerics"},
    "optim": {"numerics"},
    "eval": {"data", "spaces"},
    "train": {"data", "optim"},
    "static": {"data", "losses", "numerics", "optim", "train"},
    "analysis": {"data", "eval", "nn", "optim", "losses", "spaces", "train"},
    "cli": {"data", "eval", "train", "analysis"},
}
EVERYWHERE = {"errors", "axes", "storage", "terminal"}
FORMATS = {"numpy", "scipy", "tokenizers", "safetensors", "pyarrow", "etils"}
FORMATS |= {"msgpack", "gensim", "jaxemb"}  # gensim: only to convert its own objects
FORMATS |= {"jaxtyping", "array_record"}
# Folder of jaxemb/data to what else it may import.
BEYOND = {"builders": {"tensorflow_datasets"}, "pipelines": {"apache_beam", "tyro"}}
# Package to the heavy libraries that it may import at all.
HEAVY = {"jax", "flax", "optax", "orbax", "tensorflow_datasets", "torch", "tensorflow"}
MAY = {
    "data": set(),
    "spaces": {"jax"},
    "losses": {"jax"},
    "perturb": {"jax"},
    "numerics": {"jax"},
    "axes": {"jax"},
    "eval": {"jax", "flax"},
    "nn": {"jax", "flax"},
    "pretrained": {"jax", "flax"},
    "optim": {"jax", "optax"},
    "train": {"jax", "flax", "optax", "orbax"},
    "static": {"jax", "optax"},
    "analysis": {"jax"},
    "cli": set(),
    "errors": set(),
    "storage": set(),
    "terminal": set(),
    "__init__": set(),
}


def imports(path):
    """Every module that a file imports, at the top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def library_files():
    return sorted((ROOT / "jaxemb").rglob("*.py"))


def package_of(path):
    return path.relative_to(ROOT / "jaxemb").parts[0].removesuffix(".py")


@pytest.mark.parametrize(
    "path", library_files(), ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_library_imports_in_one_direction(path):
    package = package_of(path)
    for name in imports(path):
        parts = name.split(".")
        assert parts[0] not in ("experiments", "tests", "scripts"), name
        if parts[0] == "jaxemb" and len(parts) > 1 and parts[1] != "__version__":
            other = parts[1]
            allowed = ALLOWED.get(package, set()) | EVERYWHERE | {package}
            assert other in allowed, f"{package} imports {name}"
        if parts[0] in HEAVY:
            allowed = MAY[package]
            if "builders" in path.parts:
                allowed = allowed | {"tensorflow_datasets"}
            assert parts[0] in allowed, f"{package} imports {name}"


def test_readers_import_format_libraries_only():
    for path in (ROOT / "jaxemb" / "data").rglob("*.py"):
        for name in imports(path):
            library = name.split(".")[0]
            if library not in sys.stdlib_module_names | FORMATS:
                allowed = BEYOND.get(path.parent.name, set())
                assert library in allowed, f"{path} imports {name}"


def test_experiments_do_not_import_each_other():
    for path in (ROOT / "experiments").rglob("*.py"):
        own = path.relative_to(ROOT / "experiments").parts[0]
        for name in imports(path):
            parts = name.split(".")
            assert parts[0] not in ("tests", "scripts"), f"{path} imports {name}"
            if parts[0] == "experiments" and len(parts) > 1:
                assert parts[1] in (own, "common"), f"{path} imports {name}"


def test_importing_jaxemb_loads_nothing_heavy():
    code = f"import sys, jaxemb; assert not {HEAVY} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
