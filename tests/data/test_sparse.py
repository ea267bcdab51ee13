import numpy as np
import pytest
from safetensors import numpy as safetensors
from scipy import sparse as scipy_sparse

from jaxemb.data import sparse
from jaxemb.errors import InputError

RNG = np.random.default_rng(0)


def drawn(share, shape=(64, 96)):
    weights = RNG.normal(size=shape).astype(np.float32)
    return np.where(RNG.random(shape) < share, 0, weights).astype(np.float32)


def rows_gone():
    weights = drawn(0.0)
    weights[::2] = 0
    weights[:, :32] = 0
    return weights


TENSORS = {
    "dense": drawn(0.0),
    "half": drawn(0.5),
    "few": drawn(0.97, (400, 600)),
    "rows": rows_gone(),
    "none": np.zeros((4, 5), np.float32),
    "bias": np.array([0.0, 1.0, -0.0], np.float32),
    "minus": np.array([[0.0, -0.0], [0.0, 2.0]], np.float32),
}


def test_what_is_read_is_what_was_written(tmp_path):
    sizes = sparse.write_compact(tmp_path / "w.safetensors", TENSORS)
    found = sparse.read_compact(tmp_path / "w.safetensors")
    assert list(sorted(found)) == sorted(TENSORS)
    for name, wanted in TENSORS.items():
        np.testing.assert_array_equal(found[name], wanted)
        np.testing.assert_array_equal(np.signbit(found[name]), np.signbit(wanted))
        assert sizes[name].size <= sizes[name].dense == wanted.nbytes
    forms = {name: size.form for name, size in sizes.items()}
    assert forms["dense"] == "dense" and forms["half"] == "bits"
    assert forms["few"] == "csr" and forms["rows"] == "block"
    assert sizes["half"].size < 0.56 * sizes["half"].dense
    assert sizes["rows"].size < 0.35 * sizes["rows"].dense


def test_the_csr_is_scipys(tmp_path):
    path = tmp_path / "w.safetensors"
    weights = TENSORS["few"]
    sparse.write_compact(path, {"w": weights})
    stored = safetensors.load_file(path)
    assert weights.any(axis=1).all() and weights.any(axis=0).all()
    wanted = scipy_sparse.csr_array(weights)
    np.testing.assert_array_equal(stored["w|values"], wanted.data)
    np.testing.assert_array_equal(stored["w|indices"], wanted.indices)
    np.testing.assert_array_equal(stored["w|starts"], wanted.indptr)
    file_size = path.stat().st_size
    told = sparse.write_compact(path, {"w": weights})["w"].size
    assert told < file_size < told + 1000  # and a header


def test_forms_can_be_chosen(tmp_path):
    path = tmp_path / "w.safetensors"
    sizes = sparse.write_compact(path, TENSORS, forms=("dense", "csr"))
    assert {size.form for size in sizes.values()} == {"dense", "csr"}
    half = scipy_sparse.csr_array(TENSORS["half"])
    # 2 bytes a column's number, 4 a row's start; and the shape, two of 8.
    stored = half.data.nbytes + 2 * half.nnz + half.indptr.nbytes + 16
    assert sizes["half"].size == stored
    found = sparse.read_compact(path)
    for name, wanted in TENSORS.items():
        np.testing.assert_array_equal(found[name], wanted)
    with pytest.raises(InputError, match="expected 'dense'"):
        sparse.write_compact(path, TENSORS, forms=("csr",))


def test_files_of_another_kind_are_named(tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(safetensors.save({"w": np.ones(2)}))
    with pytest.raises(InputError, match="w is no part of a compact tensor"):
        sparse.read_compact(path)
    path.write_bytes(safetensors.save({"w|values": np.ones(2)}))
    with pytest.raises(InputError, match="w lacks its shape"):
        sparse.read_compact(path)
    with pytest.raises(InputError, match="expected no"):
        sparse.write_compact(path, {"a|b": np.ones(2)})
