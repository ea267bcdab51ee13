#!/usr/bin/env python
"""Starts a command as N processes on this machine, exactly as N hosts would run it.

    python scripts/multihost.py 2 -- python -m experiments.delta_embedding smoke

Each process gets the variables that `jaxemb.train.initialize` reads. Output lines carry
the process's number; when one process fails the others are stopped. Without
JAX_PLATFORMS or CUDA_VISIBLE_DEVICES the processes share this machine's CPU.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def relay(process: subprocess.Popen, index: int) -> None:
    for line in process.stdout:
        sys.stdout.write(f"[{index}] {line}")
        sys.stdout.flush()


def start(command: list[str], count: int, index: int, port: int) -> subprocess.Popen:
    environment = {
        **os.environ,
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(index),
    }
    if "JAX_PLATFORMS" not in environment and "CUDA_VISIBLE_DEVICES" not in environment:
        environment["JAX_PLATFORMS"] = "cpu"
    environment.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=1,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, help="how many processes")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --")
    arguments = parser.parse_args()
    command = arguments.command[arguments.command[:1] == ["--"] :]
    if arguments.count < 1 or not command:
        parser.error("expected a number of processes, --, and a command")
    port = free_port()
    processes = [
        start(command, arguments.count, i, port) for i in range(arguments.count)
    ]
    relays = [
        threading.Thread(target=relay, args=(process, index))
        for index, process in enumerate(processes)
    ]
    for thread in relays:
        thread.start()

    def forward(number, _):
        for process in processes:
            process.send_signal(number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, forward)
    failed = 0
    while any(process.poll() is None for process in processes):
        codes = [process.poll() for process in processes]
        failed = next((code for code in codes if code), 0)
        if failed:
            time.sleep(5)  # the others may be leaving for the same reason
            for process in processes:
                process.kill()
            break
        time.sleep(0.1)
    for process, thread in zip(processes, relays, strict=True):
        process.wait()
        thread.join()
    failed = failed or next((p.returncode for p in processes if p.returncode), 0)
    return failed if failed >= 0 else 128 - failed


if __name__ == "__main__":
    sys.exit(main())
