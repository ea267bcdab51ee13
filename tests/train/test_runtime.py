"""Settings of the process."""

import subprocess
import sys

import pytest

# Page faults of taking and returning one block of 40 MB ten times.
_PROGRAM = """
import resource, sys
import numpy as np
from jaxemb.train import runtime

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "keep":
    assert runtime.keep_freed_memory()
np.ones(5_000_000)
before = faults()
for _ in range(10):
    np.ones(5_000_000)
print(faults() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_freed_memory_is_used_again_without_page_faults():
    def faults(mode: str) -> int:
        command = [sys.executable, "-c", _PROGRAM, mode]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)

    assert 10 * faults("keep") < faults("leave")
