"""The memory of this process."""

import resource
import sys
from pathlib import Path


def resident_bytes() -> int:
    """What it holds now; where the system does not say, the most it has held."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return peak_bytes()
    return int(pages.read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """The most it has held."""
    # getrusage would start from the parent's peak: Linux keeps it across exec.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
