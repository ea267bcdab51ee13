"""Which devices a small experiment uses."""

import math

import jax

from jaxemb import train


def mesh_for(batch_size: int) -> jax.sharding.Mesh:
    """As many devices as divide a batch; a paper's batch of 50 suits few machines."""
    devices = jax.devices()
    if jax.process_count() > 1:
        return train.make_mesh()
    return train.make_mesh(devices[: math.gcd(batch_size, len(devices))])
