"""Text files in a run's folder, local or on an object store."""

from etils import epath


def write_text(path: epath.PathLike, text: str) -> epath.Path:
    """Writes a file whole or not at all, with the folders above it."""
    path = epath.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(text.encode())
    part.replace(path)
    return path


def is_local(path: epath.PathLike) -> bool:
    """False for `gs://` and the like, which have no append."""
    return "://" not in str(path)
