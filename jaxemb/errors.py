"""The one error that is the user's to mend."""

import os


class InputError(ValueError):
    """A file, flag or setting that cannot be used as given.

    The message is one sentence that names the place and what was expected there;
    command lines print it alone and exit with code 2.
    """

    @classmethod
    def at(cls, path: "str | os.PathLike[str]", line: int, problem: str):
        """The error for one line of a file, counted from 1."""
        return cls(f"{os.fspath(path)}:{line}: {problem}")
