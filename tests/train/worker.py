"""Trains the small model; started, killed and started again by tests.

usage: worker.py WORKDIR STEPS [jit|pmap [SECONDS_PER_EVALUATION]]
"""

import os
import sys
import time

import jax

from jaxemb import train
from jaxemb.data import files
from tests.train import small


def main(workdir, steps, mode="jit", seconds=0.0):
    train.initialize()
    cache = str(files.cache_dir() / "xla")
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    count, index = jax.process_count(), jax.process_index()

    def evaluate(state):
        print("evaluating", os.getpid(), flush=True)
        time.sleep(float(seconds))
        return small.evaluate(state)

    print("pid", os.getpid(), flush=True)
    try:
        state = train.fit(
            small.state(),
            train.data_parallel(small.step(), mode=mode),
            small.batches(process_index=index, process_count=count),
            steps,
            workdir,
            evaluate=evaluate,
            evaluate_every=20,
            keep_best="dev/accuracy",
            log_every=7,
            save_every=15,
            progress=False,
        )
    except train.Preempted as stop:
        print(stop, flush=True)
        raise
    print("done", int(jax.device_get(state.step)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
