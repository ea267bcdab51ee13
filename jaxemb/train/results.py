"""`results.json`: what was measured, on which data, by which code."""

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from etils import epath

from jaxemb import storage
from jaxemb.errors import InputError

FILE = "results.json"
ORIGIN = "origin.json"

_VERSIONED = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "jaxemb")
_VERDICTS = ("supported", "contradicted", "inconclusive")
_KINDS = ("real", "subset", "synthetic")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """One data set that a run used."""

    name: str
    kind: str
    """"real" (published, and whole), "subset" (a part of such) or "synthetic".

    Real data need not be the paper's: those that stand in for them are real too.
    """
    source: str
    sha256: str | None
    size: int
    """In examples or rows, as `name` has them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One figure: its mean over seeds or folds, with its interval."""

    name: str
    metric: str
    measured: float
    values: tuple[float, ...]
    """One a seed or fold."""
    interval: tuple[float, float] | None
    """95 %; None for a single value."""
    published: float | None = None
    """Null unless the data are the paper's own and whole.

    `validate` knows only whether they are whole; the experiment, whose they are.
    """
    source: str | None = None
    """Where the paper prints it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim of the paper and what the rows say of it."""

    claim: str
    verdict: str
    evidence: str


def as_json(config: Any) -> dict[str, Any]:
    """A config dataclass as plain JSON values."""

    def plain(value) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)
            }
        if isinstance(value, Mapping):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [plain(v) for v in value]
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return str(value)

    return plain(config)


def environment() -> dict[str, Any]:
    """Versions and devices of this run."""
    devices = jax.devices()
    kinds = sorted({d.device_kind for d in devices})
    return {
        "versions": {name: _version(name) for name in _VERSIONED},
        "devices": f"{len(devices)} × {', '.join(kinds)}",
    }


@contextlib.contextmanager
def recorded(folder: epath.PathLike) -> Iterator[None]:
    """Adds to `origin.json` by which commit, and how long, a part was trained.

    A part that was broken off and resumed has the commits and the time of all goes.
    """
    before = origin(folder)
    commits = list(dict.fromkeys([*before["commits"], commit()]))
    started = time.monotonic()
    try:
        yield
    finally:
        seconds = before["seconds"] + time.monotonic() - started
        text = json.dumps({"commits": commits, "seconds": round(seconds, 1)})
        if jax.process_index() == 0:
            storage.write_text(epath.Path(folder) / ORIGIN, text + "\n")


def origin(folder: epath.PathLike) -> dict[str, Any]:
    """What `recorded` wrote: the commits, and the seconds they trained."""
    path = epath.Path(folder) / ORIGIN
    if not path.exists():
        return {"commits": [], "seconds": 0.0}
    return json.loads(path.read_text())


def write(
    workdir: epath.PathLike,
    *,
    slug: str,
    preset: str,
    config: Mapping[str, Any],
    origins: Sequence[Mapping[str, Any]],
    data: Sequence[Data],
    rows: Sequence[Row],
    claims: Sequence[Claim],
) -> dict[str, Any]:
    """Checks and writes a run's results; returns them.

    Args:
      workdir: of the run.
      slug: of the paper.
      preset: of the paper.
      config: as JSON.
      origins: of every part, as `origin` reads them.
      data: what was read.
      rows: what was measured.
      claims: what it says of the paper.
    """
    by = [*(c for part in origins for c in part["commits"]), commit()]
    commits = dict.fromkeys(c for c in by if c)  # that of the analysis is the last
    results = {
        "slug": slug,
        "preset": preset,
        "config": dict(config),
        "commit": " ".join(commits) or None,
        **environment(),
        "seconds": round(sum(part["seconds"] for part in origins), 1),
        "data": [dataclasses.asdict(x) for x in data],
        "rows": [dataclasses.asdict(x) for x in rows],
        "claims": [dataclasses.asdict(x) for x in claims],
    }
    results = json.loads(json.dumps(results))
    validate(results)
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    storage.write_text(epath.Path(workdir) / FILE, text)
    return results


def read(path: epath.PathLike) -> dict[str, Any]:
    """Reads and checks a results file or the one in a run's folder."""
    path = epath.Path(path)
    path = path / FILE if path.is_dir() else path
    if not path.exists():
        raise InputError(f"{path}: no such file")
    try:
        results = json.loads(path.read_text())
        validate(results)
    except ValueError as error:
        raise InputError(f"{path}: not a results file: {error}") from error
    return results


def validate(results: Mapping[str, Any]) -> None:
    """Raises InputError, naming the field, for results that break the schema."""
    fields = {
        "slug": str,
        "preset": str,
        "config": dict,
        "versions": dict,
        "devices": str,
        "seconds": int | float,
        "data": list,
        "rows": list,
        "claims": list,
    }
    for name, kind in fields.items():
        _expect(isinstance(results.get(name), kind), name, f"missing or not a {kind}")
    _expect("commit" in results, "commit", "missing")
    for i, data in enumerate(results["data"]):
        _expect_fields(data, Data, f"data[{i}]")
        _expect(data["kind"] in _KINDS, f"data[{i}].kind", f"not one of {_KINDS}")
    whole = all(data["kind"] == "real" for data in results["data"])
    for i, row in enumerate(results["rows"]):
        place = f"rows[{i}]"
        _expect_fields(row, Row, place)
        _expect(_finite(row["measured"]), f"{place}.measured", "not a finite number")
        _expect(
            all(map(_finite, row["values"])), f"{place}.values", "not finite numbers"
        )
        if row["interval"] is not None:
            low, high = row["interval"]
            _expect(low <= high, f"{place}.interval", "ends before it begins")
        published = row["published"]
        _expect(published is None or whole, f"{place}.published", "beside partial data")
    for i, claim in enumerate(results["claims"]):
        _expect_fields(claim, Claim, f"claims[{i}]")
        _expect(
            claim["verdict"] in _VERDICTS,
            f"claims[{i}].verdict",
            f"not one of {_VERDICTS}",
        )


def _expect_fields(value: Any, kind: type, place: str) -> None:
    names = {f.name for f in dataclasses.fields(kind)}
    _expect(isinstance(value, dict), place, "not an object")
    _expect(set(value) == names, place, f"fields {sorted(value)}, not {sorted(names)}")


def _expect(condition: bool, place: str, problem: str) -> None:
    if not condition:
        raise InputError(f"{place}: {problem}")


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit of the checkout that this code runs from; marked if files differ."""
    root = Path(__file__).resolve().parents[2]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        changed = git("status", "--porcelain", "--", "jaxemb", "experiments")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+changes" if changed else "")
