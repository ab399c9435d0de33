"""Test MNIST and CIFAR-10: sources, safe reading of files, and surrogates."""

import gzip
import hashlib
import io
import pickle
import tarfile

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.data import acquisition, cifar10, mnist, prepare
from private_consensus.reproduction.data.acquisition import Acquisition, acquire
from private_consensus.reproduction.data.catalogue import entry
from private_consensus.reproduction.data.raw import checksum_of

ARCHIVE = "cifar-10-python.tar.gz"


def idx(array: np.ndarray, level: int = 9) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return gzip.compress(head + array.tobytes(), level)


@pytest.fixture
def digits():
    generator = np.random.default_rng(0)
    return {
        name: generator.integers(0, 10 if name[0] == "y" else 256, shape).astype(np.uint8)
        for name, shape in {
            "x_train": (6, 28, 28),
            "y_train": (6,),
            "x_test": (2, 28, 28),
            "y_test": (2,),
        }.items()
    }


def hosts(monkeypatch, dataset, urls, **changes):
    """Replace the URLs and other fields of the publishers of a data set."""
    catalogue_entry = entry(dataset)
    publishers = tuple(
        p.model_copy(update={"url": url, **changes})
        for p, url in zip(catalogue_entry.publishers, urls, strict=False)
    )
    monkeypatch.setattr(
        acquisition,
        "entry",
        lambda _: catalogue_entry.model_copy(update={"publishers": publishers}),
    )


def test_the_checksum_does_not_depend_on_gzip_compression(publisher, monkeypatch, tmp_path, digits):
    urls = [f"{publisher.url}/first", f"{publisher.url}/second"]
    hosts(monkeypatch, "mnist", urls, checksum=checksum_of(digits))
    for name, file in mnist.FILES.items():
        publisher.files[f"/first/{file}"] = idx(digits[name], level=1)
    raw, _ = acquire("mnist", Acquisition(cache=str(tmp_path), source="official"))
    assert all((raw[name] == digits[name]).all() for name in digits)


def archive(batches: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as opened:
        for name, contents in {"../../evil": b"x", **batches}.items():
            member = tarfile.TarInfo(name if "evil" in name else f"{cifar10.FOLDER}/{name}")
            member.size = len(contents)
            opened.addfile(member, io.BytesIO(contents))
    return stream.getvalue()


def batch(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (2, 3072)).astype(np.uint8)
    return pickle.dumps({b"data": pixels, b"labels": [number, 1]}, protocol=2)


def all_batches() -> dict[str, bytes]:
    names = [n for names in cifar10.BATCHES.values() for n in names]
    return {name: batch(i) for i, name in enumerate(names)}


def test_cifar10_images_are_read_in_order_with_channels_last(tmp_path):
    path = tmp_path / "cifar.tar.gz"
    path.write_bytes(archive(all_batches()))
    arrays = cifar10.from_archive(path)
    assert arrays["x_train"].shape == (10, 32, 32, 3) and arrays["x_test"].shape == (2, 32, 32, 3)
    assert arrays["y_train"].tolist() == [0, 1, 1, 1, 2, 1, 3, 1, 4, 1]
    first = pickle.loads(batch(0), encoding="bytes")[b"data"][0]
    assert arrays["x_train"][0, 0, 1].tolist() == [first[1], first[1025], first[2049]]
    assert not (tmp_path.parent.parent / "evil").exists()


class Evil:
    def __reduce__(self):
        return (print, ("this pickle ran code",))


def test_an_archive_with_a_wrong_checksum_is_not_read(publisher, monkeypatch, tmp_path, capsys):
    evil = pickle.dumps({b"data": Evil(), b"labels": []}, protocol=2)
    publisher.files = {f"/{ARCHIVE}": archive({**all_batches(), "data_batch_3": evil})}
    hosts(monkeypatch, "cifar10", [publisher.url], files={ARCHIVE: "0" * 64})
    with pytest.raises(InvalidInput, match="wrong contents"):
        acquire("cifar10", Acquisition(cache=str(tmp_path), source="official"))
    assert "ran code" not in capsys.readouterr().out


def test_the_third_host_is_used_if_the_first_two_fail(publisher, monkeypatch, tmp_path):
    good, bad = archive(all_batches()), archive({"data_batch_1": batch(0)})
    publisher.files = {f"/b/{ARCHIVE}": bad, f"/c/{ARCHIVE}": good}
    urls = [f"{publisher.url}/{name}" for name in "abc"]
    hosts(monkeypatch, "cifar10", urls, files={ARCHIVE: hashlib.sha256(good).hexdigest()})
    raw, provenance = acquire("cifar10", Acquisition(cache=str(tmp_path), source="official"))
    assert raw["x_train"].shape == (10, 32, 32, 3)
    assert "HTTP status 404" in provenance.because
    assert "wrong contents" in provenance.because


@pytest.mark.parametrize("dataset, side", [("mnist", (28, 28)), ("cifar10", (32, 32, 3))])
def test_surrogate_images_are_distinct_seeded_and_of_the_expected_shapes(tmp_path, dataset, side):
    acquisition_settings = Acquisition(source="surrogate", cache=str(tmp_path), surrogate_rows=1200)
    raw, provenance = acquire(dataset, acquisition_settings, seed=4)
    assert raw["x_train"].shape == (1200, *side) and raw["x_test"].shape == (200, *side)
    assert raw["x_train"].dtype == raw["y_train"].dtype == np.uint8
    assert set(raw["y_train"]) == set(range(10))
    again = acquire(dataset, acquisition_settings, seed=4)[1]
    assert (
        again.checksum
        == provenance.checksum
        != acquire(dataset, acquisition_settings, seed=5)[1].checksum
    )
    # No two images are equal, within or across the training and test sets.
    images = np.concatenate([raw["x_train"], raw["x_test"]]).reshape(1400, -1)
    assert len(np.unique(images, axis=0)) == 1400


def test_pixels_are_divided_by_255(tmp_path):
    acquisition_settings = Acquisition(source="surrogate", cache=str(tmp_path), surrogate_rows=1200)
    raw, provenance = acquire("mnist", acquisition_settings)
    data = prepare("mnist-pixels", raw, provenance)
    assert data.features.dtype == np.float32 and data.features.max() <= 1
    assert np.rint(data.features[0] * 255).reshape(28, 28).tolist() == raw["x_train"][0].tolist()
