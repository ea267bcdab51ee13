"""Files in a run's folder, local or on an object store."""

from etils import epath

from jaxemb.errors import InputError


def write_text(path: epath.PathLike, text: str) -> epath.Path:
    """Writes a file whole or not at all, with the folders above it.

    Raises:
      InputError: where that is not possible, saying why.
    """
    path = epath.Path(path)
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(text.encode())
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def is_local(path: epath.PathLike) -> bool:
    """False for `gs://` and the like, which have no append."""
    return "://" not in str(path)


def absolute(path: epath.PathLike) -> epath.Path:
    """The path from the root; a remote one as it is, for pathlib would break it."""
    path = epath.Path(path)
    return path.absolute() if is_local(path) else path
