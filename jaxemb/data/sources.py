"""Where a data set is: a local folder, a pinned wheel, or TFDS.

Looked for in this order: the folder `$JAXEMB_DATA`, `<cache>/local`, `<cache>/wheels`,
what TFDS prepared in `<cache>/tfds`; a wheel that lacks parts comes after TFDS, which
has them all. `locate` only looks; `get` then fetches the pinned wheel, or has TFDS
prepare its own copy.
"""

import dataclasses
import difflib
import functools
import hashlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from jaxemb.data import files, wheels
from jaxemb.data.catalogue import DATA_SETS, DataSet, Part
from jaxemb.data.wheels import FetchError, Offline, Wheel
from jaxemb.errors import InputError

__all__ = [
    "DATA_SETS",
    "DataSet",
    "FetchError",
    "Found",
    "Offline",
    "Part",
    "Wheel",
    "find",
    "get",
    "locate",
    "missing",
]

Place = Path | zipfile.Path

_LOCAL = "local folder"
_PACKED = ".gz", ".bz2", ".xz"


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """A data set that is on this machine.

    Attributes:
      data_set: what it is.
      source: where it was found: "local folder", "wheel NAME==VERSION", "tfds NAME".
      parts: where each of its files is; empty for TFDS, which keeps its own format.
      folder: what holds all of them.
    """

    data_set: DataSet
    source: str
    parts: Mapping[str, Place]
    folder: Path

    @property
    def path(self) -> Place:
        """The file, if the data set is one, else the folder or wheel that holds it."""
        return next(iter(self.parts.values())) if len(self.parts) == 1 else self.folder

    def part(self, name: str) -> Place:
        """The file of one part."""
        if name in self.parts:
            return self.parts[name]
        own = self.data_set.name
        has = f"it has {', '.join(self.parts)}"
        if not self.parts:
            has = f"jaxemb.data.builders.read({own!r}) reads what TFDS prepared"
        raise InputError(f"{own} from the {self.source} has no part {name!r}; {has}")

    @functools.cached_property
    def sha256(self) -> str:
        """Of the file as it is read from disk or from the wheel.

        For several files: of the lines `<sha256>  <part>` in the order of part names.
        """
        hashes = {name: wheels.sha256_of(place) for name, place in self._files()}
        if len(hashes) == 1:
            return next(iter(hashes.values()))
        lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
        return hashlib.sha256(lines.encode()).hexdigest()

    @functools.cached_property
    def size(self) -> int:
        """Bytes of the files that `sha256` is of."""
        return sum(_size(place) for _, place in self._files())

    @property
    def whole(self) -> bool:
        """Whether all parts are here and, where their bytes are known, as many."""
        if not self.parts:
            return True
        packed = any(place.suffix in _PACKED for place in self.parts.values())
        bytes_known = self.source == _LOCAL and self.data_set.only_local and not packed
        bytes_known = bytes_known and self.data_set.size_known
        right = not bytes_known or self.size == self.data_set.size
        return right and len(self.parts) == len(self.data_set.parts)

    @property
    def kind(self) -> Literal["real", "subset"]:
        """What a results.json calls it: "subset" also where it is not `whole`."""
        return self.data_set.kind if self.whole else "subset"

    def _files(self) -> Iterator[tuple[str, Place]]:
        if self.parts:
            yield from self.parts.items()
            return
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                yield path.relative_to(self.folder).as_posix(), path


def find(name: str) -> DataSet:
    """The data set of that name."""
    if name in DATA_SETS:
        return DATA_SETS[name]
    close = difflib.get_close_matches(name, DATA_SETS, 1)
    hint = f"perhaps {close[0]}; " if close else ""
    raise InputError(f"no data set {name!r}; {hint}there are {', '.join(DATA_SETS)}")


def locate(name: str | DataSet) -> Found | None:
    """Looks for a data set on this machine and fetches nothing."""
    data_set = find(name) if isinstance(name, str) else name
    for folder in _local_folders():
        if parts := _local_parts(data_set, folder):
            return Found(data_set, _LOCAL, parts, _common_folder(parts, folder))
    path = wheels.cached(data_set.wheel) if data_set.wheel else None
    fetched = None if path is None else _in_wheel(data_set, path)
    prepared = _tfds_folder(data_set)
    if prepared is None or (fetched and fetched.whole):
        return fetched
    if any(prepared.glob("**/dataset_info.json")):
        return Found(data_set, f"tfds {data_set.tfds}", {}, prepared)
    return fetched


def get(name: str | DataSet, *, progress: bool = True) -> Found:
    """Looks for a data set and fetches it if it is not on this machine.

    Args:
      name: one of `DATA_SETS`.
      progress: whether to say on standard error what is fetched, with a progress bar
        where that is a terminal.

    Raises:
      Offline: where it has to be fetched and there is no network.
      FetchError: where it cannot be fetched or kept for another reason.
      InputError: where it has to be put into a folder by hand.
    """
    data_set = find(name) if isinstance(name, str) else name
    if found := locate(data_set):
        return found
    if data_set.wheel:
        return _in_wheel(data_set, wheels.fetch(data_set.wheel, progress=progress))
    if data_set.tfds:
        # TensorFlow Datasets is slow to import, and only this needs it.
        from jaxemb.data import builders

        try:
            builders.prepare_tfds(data_set.tfds)
        except FetchError as error:
            raise type(error)(f"{missing(data_set)}; {error}") from error
        if found := locate(data_set):
            return found
    raise InputError(missing(data_set))


def missing(name: str | DataSet) -> str:
    """Says of a data set that it is not here, and which files to put where."""
    data_set = find(name) if isinstance(name, str) else name
    parts = [part for part in data_set.parts.values() if part.local]
    required = [part for part in parts if not part.optional] or parts[:1]
    wanted = ", ".join(part.local[0] for part in required)
    own = os.environ.get("JAXEMB_DATA") or "not set"
    where = (
        f": put {wanted} into one of the folders where it was looked for, in "
        f"$JAXEMB_DATA ({own}) and in {files.cache_dir() / 'local'}"
    )
    return (
        f"{data_set.name} ({data_set.title}) is not on this machine"
        f"{where if required else ''}; it comes from {data_set.homepage}"
    )


def _local_folders() -> list[Path]:
    local = files.cache_dir() / "local"
    if not (own := os.environ.get("JAXEMB_DATA")):
        return [local]
    if not Path(own).expanduser().is_dir():
        raise InputError(f"$JAXEMB_DATA: {own} is not a folder")
    return [Path(own).expanduser(), local]


def _local_parts(data_set: DataSet, folder: Path) -> dict[str, Place]:
    """The files below `folder`; none if one that is required is not there."""
    if not folder.is_dir():
        return {}
    parts: dict[str, Place] = {}
    for name, part in data_set.parts.items():
        if place := _first_file(folder, part):
            parts[name] = place
        elif not part.optional:
            return {}
    return parts


def _first_file(folder: Path, part: Part) -> Place | None:
    for local in part.local:
        for suffix in ("", *_PACKED):
            place = files.resolve(folder / (local + suffix))
            if place.is_file():
                return place
    return None


def _common_folder(parts: Mapping[str, Place], folder: Path) -> Path:
    holders = {str(place.parent) for place in parts.values()}
    return Path(os.path.commonpath([str(folder)] if len(holders) > 1 else holders))


def _in_wheel(data_set: DataSet, path: Path) -> Found:
    parts = {
        name: wheels.member(path, part.member)
        for name, part in data_set.parts.items()
        if part.member is not None
    }
    return Found(data_set, f"wheel {data_set.wheel}", parts, path)


def _tfds_folder(data_set: DataSet) -> Path | None:
    if data_set.tfds is None:
        return None
    return files.cache_dir() / "tfds" / data_set.tfds


def _size(place: Place) -> int:
    if isinstance(place, Path):
        return place.stat().st_size
    return place.root.getinfo(place.at).file_size
