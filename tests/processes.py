"""A module of the tests as two processes on this machine, as two hosts would be."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]


def start_two(module, *arguments):
    """Starts them with a device each."""
    launcher = [sys.executable, str(ROOT / "scripts" / "multihost.py"), "2", "--"]
    return subprocess.Popen(
        [*launcher, sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process, seconds=600):
    """Waits; returns what both have printed."""
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher stops both
        process.communicate()
        raise
    assert process.returncode == 0, output
    return output
