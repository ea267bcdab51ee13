"""Scripts are no package: a test has one as a module by this."""

import importlib.util
import pathlib
import sys
from types import ModuleType

SCRIPTS = pathlib.Path(__file__).parents[1] / "scripts"


def script(path: str) -> ModuleType:
    """The module of a file below scripts/."""
    file = SCRIPTS / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module  # where dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module
