"""The draws' store: the same bytes however the draws arrive, readable when killed, opened by plain xarray and ArviZ."""

import hashlib
import itertools
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fald_hpc import checkpoint, storage, zarr_draws
from fald_hpc.errors import UserError

NAMES = ("intercept", "β[2]", "age")


def series(records, chains=2, seed=5):
    return np.random.default_rng(seed).normal(size=(chains, records, len(NAMES)))


def cuts_of(records, rng, pieces):
    inner = np.sort(rng.integers(0, records + 1, size=pieces - 1))
    return np.concatenate([[0], inner, [records]])


def feed(store, x, edges):
    """Append x[i, edges[j, i]:edges[j + 1, i]] segment by segment, as the segment loop does."""
    edges = np.asarray(edges)
    if edges.ndim == 1:
        edges = np.repeat(edges[:, None], x.shape[0], axis=1)
    for first, last in itertools.pairwise(edges):
        counts = last - first
        records = np.full((x.shape[0], counts.max(), x.shape[2]), np.nan)
        for i, n in enumerate(counts):
            records[i, :n] = x[i, first[i] : last[i]]
        thin = storage.thinning(int(first.min()), store.start, store.capacity)
        store.append(*storage.pick(records, counts, first, thin), last, thin)


def tree(folder):
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def kept(x, start, capacity, seen=None):
    n = x.shape[1] if seen is None else min(seen)
    return x[:, : n : storage.thinning(n, start, capacity)]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of 8 draws of two chains; and no waiting for the disk, which these tests do not cut off."""
    monkeypatch.setattr(zarr_draws, "CHUNK_BYTES", 8 * 2 * 3 * 8)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


@pytest.mark.parametrize(
    ("records", "start", "capacity", "thin"),
    [(0, 1, 10, 1), (10, 1, 10, 1), (11, 1, 10, 2), (21, 1, 10, 4), (30, 3, 10, 3), (31, 3, 10, 6), (1, 5, 10, 5)],
)
def test_thinning_table(records, start, capacity, thin):
    assert storage.thinning(records, start, capacity) == thin


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_pick_keeps_multiples(data):
    thin = data.draw(st.integers(1, 7))
    first = np.array(data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=3)))
    counts = np.array(data.draw(st.lists(st.integers(0, 20), min_size=len(first), max_size=len(first))))
    index = first[:, None] + np.arange(20)
    draws, n = storage.pick(index[:, :, None].astype(float), counts, first, thin)
    for i in range(len(first)):
        expected = [r for r in range(first[i], first[i] + counts[i]) if r % thin == 0]
        assert draws[i, : n[i], 0].tolist() == expected
        assert not draws[i, n[i] :].any()


@pytest.mark.parametrize("records", [1, 7, 8, 9, 40, 41, 167, 1000])
@pytest.mark.parametrize("start", [1, 3])
def test_bytes_do_not_depend_on_the_cuts(tmp_path, records, start):
    x, rng = series(records), np.random.default_rng(records)
    plans = [[0, records], range(records + 1), cuts_of(records, rng, 5), cuts_of(records, rng, 17)]
    states = []
    for number, edges in enumerate(plans):
        store = storage.DrawStore.create(tmp_path / str(number), NAMES, 2, capacity=40, thin=start)
        feed(store, x, list(edges))
        states.append(checkpoint.pack(store.export(), {})[-1])
        assert np.array_equal(store.array(), kept(x, start, 40))
        store.close()
        assert np.array_equal(storage.open_draws(tmp_path / str(number)).values, kept(x, start, 40))
    assert len(set(states)) == 1
    assert all(tree(tmp_path / str(n)) == tree(tmp_path / "0") for n in range(len(plans)))


def test_other_draws_give_other_bytes(tmp_path):
    for number in range(2):
        store = storage.DrawStore.create(tmp_path / str(number), NAMES, 2, capacity=40)
        feed(store, series(30, seed=number), [0, 30])
        store.close()
    assert tree(tmp_path / "0") != tree(tmp_path / "1")


@pytest.mark.parametrize("chunk", [8, 1])
def test_chains_of_different_length(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(zarr_draws, "CHUNK_BYTES", chunk * 2 * 3 * 8)
    x, rng = series(400), np.random.default_rng(3)
    ends = np.array([391, 347])
    for number in range(8):
        inner = np.sort(rng.integers(0, ends, size=(2 + 9 * number, 2)), axis=0)
        store = storage.DrawStore.create(tmp_path / str(number), NAMES, 2, capacity=50)
        feed(store, x, np.concatenate([[[0, 0]], inner, [ends]]))
        assert np.array_equal(store.array(), kept(x, 1, 50, ends))
        store.close()
        assert tree(tmp_path / str(number)) == tree(tmp_path / "0")


def test_resume_at_any_point_gives_the_same_bytes(tmp_path):
    """Checkpoints at random points, then up to 300 more records are written and lost: doublings are passed by some."""
    x, rng = series(700), np.random.default_rng(8)
    whole = storage.DrawStore.create(tmp_path / "whole", NAMES, 2, capacity=40)
    feed(whole, x, [0, 700])
    whole.close()
    for number in range(12):
        path = tmp_path / str(number)
        store = storage.DrawStore.create(path, NAMES, 2, capacity=40)
        at = 0
        while at < 700:
            saved = min(700, at + int(rng.integers(1, 200)))
            lost = min(700, saved + int(rng.integers(0, 300)))
            feed(store, x, [at, saved])
            state = checkpoint.unpack(b"".join(checkpoint.pack(store.export(), {})))[0]
            feed(store, x, [saved, lost])
            if rng.random() < 0.3:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    store.close()
            store = storage.DrawStore.resume(path, NAMES, capacity=40, state=state)
            at = saved
        store.close()
        assert tree(path) == tree(tmp_path / "whole")


@pytest.mark.parametrize(("chunk", "capacity"), [(8, 40), (1, 11)])
def test_resume_from_before_a_doubling(tmp_path, monkeypatch, chunk, capacity):
    """The store is one to four doublings ahead of the checkpoint, by a single record or more."""
    monkeypatch.setattr(zarr_draws, "CHUNK_BYTES", chunk * 2 * 3 * 8)
    x = series(8 * capacity + 9)
    whole = storage.DrawStore.create(tmp_path / "whole", NAMES, 2, capacity=capacity)
    feed(whole, x, [0, x.shape[1]])
    whole.close()
    for saved in (7, 8, 12, capacity - 16 + chunk, capacity, 2 * capacity):
        for lost in (capacity + 1, capacity + 2, 2 * capacity + 1, 4 * capacity + 1, 8 * capacity + 1):
            if lost <= saved or saved < 0:
                continue
            store = storage.DrawStore.create(tmp_path / "d", NAMES, 2, capacity=capacity)
            feed(store, x, [0, saved])
            state = store.export()
            feed(store, x, [*range(saved, lost, 1 if lost - saved < 20 else 5), lost])
            store = storage.DrawStore.resume(tmp_path / "d", NAMES, capacity=capacity, state=state)
            feed(store, x, [saved, lost, x.shape[1]])
            assert np.array_equal(store.array(), kept(x, 1, capacity))
            store.close()
            assert tree(tmp_path / "d") == tree(tmp_path / "whole")


def test_closing_removes_what_a_kill_left(tmp_path, monkeypatch):
    x = series(300)
    for name in ("clean", "killed"):
        with monkeypatch.context() as patch:
            if name == "killed":
                patch.setattr(zarr_draws.ZarrDraws, "sweep", lambda self, generation, chunks: None)
            store = storage.DrawStore.create(tmp_path / name, NAMES, 2, capacity=40)
            feed(store, x, range(0, 301, 10))
        if name == "killed":
            assert tree(tmp_path / "killed") != tree(tmp_path / "clean")
            (tmp_path / name / "posterior/theta/.0.3.0.new").write_bytes(b"half")
            (tmp_path / name / "posterior/.zarr.json.new").write_bytes(b"half")
        store.close()
    assert tree(tmp_path / "killed") == tree(tmp_path / "clean")


def test_fewer_steps_than_before_the_interruption(tmp_path):
    """The stride has doubled meanwhile: every other draw is lost, which is said."""
    x = series(60)
    store = storage.DrawStore.create(tmp_path / "d", NAMES, 2, capacity=40)
    feed(store, x, [0, 30])
    state = store.export()
    feed(store, x, [30, 50])
    store = storage.DrawStore.resume(tmp_path / "d", NAMES, capacity=40, state=state)
    feed(store, x, [30, 35])
    with pytest.warns(UserWarning, match="one draw in 2 records"):
        store.close()
    assert np.array_equal(storage.open_draws(tmp_path / "d").values, x[:, :35:2])


def test_extension_of_a_finished_run(tmp_path):
    x = series(300)
    for name, ends in {"once": [300], "twice": [100, 300]}.items():
        store = storage.DrawStore.create(tmp_path / name, NAMES, 2, capacity=40)
        at = 0
        for end in ends:
            feed(store, x, [at, end])
            store.close()
            store = storage.DrawStore.resume(tmp_path / name, NAMES, capacity=40, state=store.export())
            at = end
        store.close()
    assert tree(tmp_path / "once") == tree(tmp_path / "twice")


CHILD = """
import itertools, sys, numpy as np
from fald_hpc import checkpoint, storage, zarr_draws
zarr_draws.CHUNK_BYTES = 384
folder, total = sys.argv[1], int(sys.argv[2])
x = np.random.default_rng(5).normal(size=(2, total, 3))
names = ("intercept", "β[2]", "age")
saved = checkpoint.load(folder + "/checkpoint")
if saved is None:
    store, at = storage.DrawStore.create(folder + "/draws.zarr", names, 2, capacity=300), 0
else:
    store = storage.DrawStore.resume(folder + "/draws.zarr", names, capacity=300, state=saved[0])
    at = saved[1]["at"]
print("ready", flush=True)
for step in itertools.count(1):
    end = min(total, at + 13)
    first, n = np.full(2, at), np.full(2, end - at)
    thin = storage.thinning(at, 1, 300)
    store.append(*storage.pick(x[:, at:end], n, first, thin), first + n, thin)
    at = end
    if step % 5 == 0:
        checkpoint.save(folder + "/checkpoint", store.export(), {"at": at})
    if at == total:
        store.close()
        break
"""


def test_killed_at_random_times(tmp_path):
    """SIGKILL until it gets through: every time the store can be read, and at the end it has the bytes of one go."""
    total, rng = 12000, np.random.default_rng(2)
    x = series(total)
    (tmp_path / "run").mkdir()
    kills = 0
    for attempt in range(30):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(total)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "ready\n"
        if attempt < 5:
            time.sleep(rng.uniform(0.02, 0.25))
            child.send_signal(signal.SIGKILL)
        code = child.wait()
        child.stdout.close()
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += 1
        draws = storage.open_draws(tmp_path / "run" / "draws.zarr").values
        assert not np.isnan(draws).any()
        thin = [t for t in 2 ** np.arange(8) if np.array_equal(draws, x[:, ::t][:, : draws.shape[1]])]
        assert thin
    assert kills >= 3
    whole = storage.DrawStore.create(tmp_path / "whole", NAMES, 2, capacity=300)
    feed(whole, x, [0, total])
    whole.close()
    assert tree(tmp_path / "run" / "draws.zarr") == tree(tmp_path / "whole")


def test_plain_xarray_and_arviz_read_it(tmp_path):
    import arviz
    import xarray

    x = series(100)
    store = storage.DrawStore.create(tmp_path / "draws.zarr", NAMES, 2, capacity=60)
    feed(store, x, [0, 100])
    store.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = xarray.open_zarr(tmp_path / "draws.zarr", group="posterior")
        tree_ = xarray.open_datatree(tmp_path / "draws.zarr", engine="zarr")
    assert data["theta"].dims == ("chain", "draw", "parameter")
    assert data["theta"].attrs["thin"] == 2
    assert list(data["parameter"].values) == list(NAMES)
    assert np.array_equal(data["theta"].sel(parameter="β[2]").values, x[:, ::2, 1])
    inference = arviz.from_datatree(tree_)
    assert np.array_equal(inference.posterior["theta"].values, x[:, ::2])
    assert list(arviz.summary(storage.to_arviz(storage.open_draws(tmp_path / "draws.zarr"))).index) == [
        f"theta[{name}]" for name in NAMES
    ]


@pytest.mark.parametrize("records", [0, 5, 20])
def test_readable_while_it_grows(tmp_path, records):
    import xarray

    store = storage.DrawStore.create(tmp_path / "d", NAMES, 2, capacity=60)
    feed(store, series(records), [0, records])
    data = xarray.open_zarr(tmp_path / "d", group="posterior", consolidated=False)
    assert data.sizes["draw"] == records // 8 * 8
    assert np.array_equal(data["theta"].values, series(records)[:, : records // 8 * 8])


def test_shape_is_written_as_zarr_would(tmp_path):
    files = zarr_draws.ZarrDraws(tmp_path / "d", NAMES, 2)
    files.start(3)
    files.publish(16, 3, 1)
    name = "posterior/theta/zarr.json"
    assert (tmp_path / "d" / name).read_bytes() == zarr_draws.documents(NAMES, 2, 8, 16, 3, 1, False)[name]


def test_in_memory(tmp_path):
    x = series(500)
    store = storage.DrawStore.create(None, NAMES, 2, capacity=40)
    feed(store, x, [0, 77, 500])
    store.close()
    assert np.array_equal(store.array(), kept(x, 1, 40))


def test_lost_or_repeated_records_are_noticed(tmp_path):
    store = storage.DrawStore.create(None, NAMES, 2, capacity=40)
    with pytest.raises(ValueError, match="draws at stride"):
        store.append(series(5), np.array([5, 5]), np.array([6, 6]), 1)
    with pytest.raises(ValueError, match="draws at stride"):
        store.append(series(2), np.array([2, 2]), np.array([5, 5]), 4)  # coarser than the store


@pytest.mark.parametrize("damage", ["no store", "no chunk", "short chunk", "other stride"])
def test_store_that_does_not_fit_its_checkpoint(tmp_path, damage):
    import shutil

    store = storage.DrawStore.create(tmp_path / "d", NAMES, 2, capacity=40, thin=2)
    feed(store, series(60), [0, 60])
    state = store.export()
    if damage == "no store":
        shutil.rmtree(tmp_path / "d")
    elif damage == "no chunk":
        (tmp_path / "d/posterior/theta/c.0.1.0").unlink()
    elif damage == "short chunk":
        (tmp_path / "d/posterior/theta/c.0.1.0").write_bytes(b"x" * 80)
    else:
        state["draws_thin"] = np.array([2, 4])
    with pytest.raises(UserError, match="--overwrite"):
        storage.DrawStore.resume(tmp_path / "d", NAMES, capacity=40, state=state)


def test_user_errors(tmp_path):
    with pytest.raises(UserError, match=r"draws_megabytes = 0.001.*set it to 0.0323 or more"):
        storage.capacity(100, 4, 0.001)
    assert storage.capacity(100, 4, 0.0323) == 10
    with pytest.raises(UserError, match="'a'"):
        storage.DrawStore.create(None, ("a", "b", "a"), 1, capacity=10)
    with pytest.raises(UserError, match="no draws"):
        storage.open_draws(tmp_path)


@pytest.mark.parametrize(("chains", "d", "draws"), [(4, 4, 8192), (100, 20, 64), (1, 1, 131072), (20, 10**6, 1)])
def test_chunk_table(monkeypatch, chains, d, draws):
    monkeypatch.setattr(zarr_draws, "CHUNK_BYTES", 1 << 20)
    assert zarr_draws.chunk_draws(chains, d) == draws


def test_chunks_of_a_single_draw(tmp_path, monkeypatch):
    monkeypatch.setattr(zarr_draws, "CHUNK_BYTES", 1)
    x = series(57)
    for number, edges in enumerate([[0, 57], range(58)]):
        store = storage.DrawStore.create(tmp_path / str(number), NAMES, 2, capacity=11)
        feed(store, x, list(edges))
        store.close()
        assert np.array_equal(storage.open_draws(tmp_path / str(number)).values, kept(x, 1, 11))
    assert tree(tmp_path / "0") == tree(tmp_path / "1")


def test_imports_stay_light():
    code = (
        "import sys; from fald_hpc import storage, checkpoint, durable, summary;"
        "from fald_hpc.metrics import diagnostics;"
        "storage.DrawStore.create(None, ('a',), 1, capacity=10);"
        "print(sorted({'xarray', 'arviz', 'matplotlib', 'pandas', 'mpi4py', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
