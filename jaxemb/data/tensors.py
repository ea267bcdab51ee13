"""Named tensors of a safetensors file, as numpy arrays."""

import numpy as np
from safetensors import SafetensorError, deserialize

from jaxemb.data import files
from jaxemb.data.formats.arrays import widened
from jaxemb.errors import InputError

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_DTYPES |= {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"}
_DTYPES |= {"U8": "|u1", "BOOL": "|b1"}


def read_tensors(path: files.Location) -> dict[str, np.ndarray]:
    """Reads all tensors, in the order of the file; bfloat16 becomes float32.

    Raises:
      InputError: naming the file, where it is damaged or of a kind that is not known.
    """
    with files.open_bytes(path) as stream:
        content = stream.read()
    try:
        entries = deserialize(content)
    except SafetensorError as error:
        raise InputError(f"{path}: not a safetensors file ({error})") from error
    tensors = {}
    for name, entry in entries:
        kind = entry["dtype"]
        if kind not in _DTYPES:
            raise InputError(
                f"{path}: {name} is {kind}; expected one of {', '.join(_DTYPES)}"
            )
        array = np.frombuffer(entry["data"], _DTYPES[kind]).reshape(entry["shape"])
        tensors[name] = widened(array) if kind == "BF16" else array
    return tensors
