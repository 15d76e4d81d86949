"""Clients' files: what is read, and that everything else ends in one sentence."""

import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from fald_hpc.data import ClientData, Clients, Partition
from fald_hpc.data.columns import Columns
from fald_hpc.data.readers import read_rows
from fald_hpc.errors import UserError

X = np.array([[1.5, -2.0], [0.1, 1e-300], [3.0, 1e300]])
Y = np.array([0.0, 1.0, 1.0])


def csv(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def table(x=X, y=Y, label="y"):
    lines = [f"a,b,{label}"] + [f"{r[0]!r},{r[1]!r},{t!r}" for r, t in zip(x.tolist(), y.tolist(), strict=True)]
    return "\n".join(lines) + "\n"


def refused(action, *words):
    """Assert that an action raises UserError with all the words, in one sentence of one line."""
    with pytest.raises(UserError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def test_three_formats_give_the_same_client(tmp_path):
    for kind in ("csv", "npz", "parquet"):
        (tmp_path / kind).mkdir()
    csv(tmp_path / "csv" / "one.csv", table())
    np.savez(tmp_path / "npz" / "one.npz", X=X, y=Y.astype(np.int32), feature_names=np.array(["a", "b"]))
    parquet.write_table(
        pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": Y.astype(bool)}), tmp_path / "parquet" / "one.parquet"
    )
    prints = set()
    for kind in ("csv", "npz", "parquet"):
        clients = Clients.from_folder(tmp_path / kind, label="y")
        (client,) = clients.load([0])
        assert clients.feature_names == ("a", "b")
        assert client.id == "one"
        assert client.features.flags.c_contiguous
        np.testing.assert_array_equal(client.features, X)
        np.testing.assert_array_equal(client.target, Y)
        prints.add(clients.fingerprint([0])[0])
    assert len(prints) == 1


def test_fingerprint_sees_every_entry_and_the_id():
    def of(name="a", x=X, y=Y, weights=None):
        return Clients.from_arrays({name: (x, y)}, weights=None if weights is None else {name: weights}).fingerprint(
            [0]
        )

    changed = X.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 0.0)
    assert of() == of()
    assert (
        len({of()[0], of("b")[0], of(x=changed)[0], of(y=1 - Y)[0], of(weights=np.ones(3))[0], of(x=X[:, ::-1])[0]})
        == 6
    )


def test_roles_of_columns(tmp_path):
    csv(tmp_path / "c.csv", "w,y,b,o,a\n2,0,1,0.5,10\n0,1,3,-1,20\n")
    clients = Clients.from_folder(tmp_path, label="y", features=["a", "b"], weight="w", offset="o")
    assert clients.feature_names == ("a", "b")
    (client,) = clients.load([0])
    np.testing.assert_array_equal(client.features, [[10, 1], [20, 3]])
    np.testing.assert_array_equal(client.weights, [2, 0])
    np.testing.assert_array_equal(client.offset, [0.5, -1])
    refused(lambda: Clients.from_folder(tmp_path, label="y", features=["y"]), "'y'", "twice")
    refused(lambda: Clients.from_folder(tmp_path, label="yy", weight="w").load([0]), "'yy'", "did you mean 'y'")
    refused(lambda: Clients.from_folder(tmp_path).load([0]), "label", "'w', 'y', 'b'")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("\n\n", ["no header"]),
        ("a,b,y\n1,2\n", ["row 1", "2 cells", "3"]),
        ("a,b,y\n1,2,3\n1,2,3,4\n", ["4 cells", "3"]),
        ("a,b,y\n1,red,0\n", ["'b'", "'red'", "row 1"]),
        ("a,b,y\n1,2,0\n1,,0\n", ["'b'", "empty", "row 2"]),
        ("a,b,y\n1,2,0\nnan,1,0\n", ["'a'", "nan", "row 2"]),
        ("a,b,y\n1,2,0\n1,-inf,0\n", ["'b'", "-inf", "row 2"]),
        ("a,b,y\n1,1e999,0\n", ["'b'", "row 1"]),
        ("a;b;y\n1;2;0\n", ["commas"]),
        ("1,2,0\n3,4,1\n", ["header"]),
        (",a,y\n0,1,0\n", ["column 1", "index"]),
        ("a,a,y\n1,2,0\n", ["'a'", "twice"]),
        ("y\n1\n", ["no feature"]),
        ('"a,b,y\n1,2,0\n', ["header"]),
        (b"a,b,y\n1,\xff,0\n", ["line 2", "UTF-8"]),
        ("a,b,y\n1,2,0\n".encode("utf-16"), ["UTF-16"]),
        (b"a,b,y\n1,\x00,0\n", ["NUL"]),
        (b"PK\x03\x04 not csv at all", ["there is no column"]),
    ],
)
def test_bad_csv_is_refused_in_one_sentence(tmp_path, text, words):
    path = csv(tmp_path / "bad.csv", text)
    refused(lambda: read_rows(path, Columns("y")), "bad.csv", *words)


def test_csv_that_looks_odd_and_is_right(tmp_path):
    plain = read_rows(csv(tmp_path / "plain.csv", table()), Columns("y"))
    variants = {
        "bom": b"\xef\xbb\xbf" + table().encode(),
        "crlf": table().replace("\n", "\r\n").encode(),
        "quotes": table().replace("1.5", '" 1.5 "').encode(),
        "spaces": table().replace("a,b,y", "a , b, y").encode(),
        "no final newline": table().rstrip("\n").encode(),
        "empty lines": ("\n" + table().replace("\n", "\n\n")).encode(),
    }
    for name, content in variants.items():
        rows = read_rows(csv(tmp_path / "odd.csv", content), Columns("y"))
        assert rows.names == ("a", "b"), name
        np.testing.assert_array_equal(rows.features, plain.features, name)
    rows = read_rows(csv(tmp_path / "bool.csv", "a,y\n1,True\n2,false\n"), Columns("y"))
    np.testing.assert_array_equal(rows.target, [1, 0])


def test_csv_numbers_are_those_of_python(tmp_path):
    values = np.random.default_rng(1).normal(size=500) * 10.0 ** np.random.default_rng(2).integers(-300, 300, 500)
    path = csv(tmp_path / "n.csv", "a,y\n" + "".join(f"{v!r},0\n" for v in values.tolist()))
    np.testing.assert_array_equal(read_rows(path, Columns("y")).features[:, 0], values)


def test_a_client_without_rows_needs_a_header_only(tmp_path):
    csv(tmp_path / "a.csv", "a,b,y\n")
    np.savez(tmp_path / "b.npz", X=np.empty((0, 2)), y=np.empty(0), feature_names=["a", "b"])
    csv(tmp_path / "c.csv", "a,b,y\n1,2,1\n")
    loaded = Clients.from_folder(tmp_path, label="y").load([0, 1, 2])
    assert [c.features.shape for c in loaded] == [(0, 2), (0, 2), (1, 2)]


class Bomb:
    """A pickle that leaves a trace when loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("name", ["X", "y", "weights"])
def test_a_pickle_is_refused_and_not_run(tmp_path, name):
    trace = str(tmp_path / "trace")
    arrays = {"X": X, "y": Y, "weights": np.ones(3)}
    arrays[name] = np.array([Bomb(trace)] * 3, dtype=object)
    np.savez(tmp_path / "c.npz", **arrays)
    refused(lambda: read_rows(tmp_path / "c.npz", Columns()), "c.npz", "pickle", "refused")
    (tmp_path / "d.npz").write_bytes(pickle.dumps(Bomb(trace)))
    refused(lambda: read_rows(tmp_path / "d.npz", Columns()), "d.npz", "not an npz")
    assert not os.path.exists(trace)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": X}, ["`y`"]),
        ({"X": X, "y": Y[:2]}, ["3 rows", "2"]),
        ({"X": X[:, 0], "y": Y}, ["shape", "two axes"]),
        ({"X": X, "y": X}, ["shape", "one axis"]),
        ({"X": X.astype(str), "y": Y}, ["text"]),
        ({"X": X + 1j, "y": Y}, ["complex"]),
        ({"X": np.where(X > 2, np.nan, X), "y": Y}, ["nan", "row 3", "column 1"]),
        ({"X": X, "y": Y, "weights": [1, -1, 1]}, ["weight", "negative", "row 2"]),
        ({"X": X, "y": Y, "feature_names": ["a"]}, ["feature_names", "2 columns"]),
        ({"X": X, "y": Y, "offset": [np.inf] * 3}, ["offset", "inf"]),
    ],
)
def test_bad_npz_is_refused_in_one_sentence(tmp_path, arrays, words):
    np.savez(tmp_path / "c.npz", **arrays)
    refused(lambda: read_rows(tmp_path / "c.npz", Columns()), "c.npz", *words)


def test_bad_parquet_is_refused_in_one_sentence(tmp_path):
    def write(columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "c.parquet")
        return lambda: read_rows(tmp_path / "c.parquet", Columns("y"))

    refused(write({"a": ["x", "y"], "y": [0, 1]}), "'a'", "string")
    refused(write({"a": [1.0, None], "y": [0, 1]}), "'a'", "row 2", "missing")
    refused(write({"a": [1.0, np.nan], "y": [0, 1]}), "'a'", "row 2", "nan")
    refused(write({"a": [[1.0], [2.0]], "y": [0, 1]}), "'a'", "list")
    refused(write({"b": [1.0]}), "there is no column 'y'")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 rubbish PAR1")
    refused(lambda: read_rows(tmp_path / "c.parquet", Columns("y")), "not a valid Parquet")


def test_wrong_paths(tmp_path):
    csv(tmp_path / "a.csv", table())
    refused(lambda: Clients.from_folder(tmp_path / "nowhere"), "no such folder")
    refused(lambda: Clients.from_folder(tmp_path / "a.csv"), "file")
    refused(lambda: Clients.from_folder("\0"), "cannot be read")
    refused(lambda: Clients.from_file(tmp_path, client_column="c", label="y"), "format")
    refused(lambda: Clients.from_file(tmp_path / "b.csv", client_column="c", label="y"), "no such file")
    (tmp_path / "f.csv").mkdir()
    refused(lambda: Clients.from_file(tmp_path / "f.csv", client_column="c", label="y"), "folder")
    refused(lambda: Clients.from_folder(tmp_path), "f.csv", "folder")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "README.md").write_text("notes")
    (tmp_path / "empty" / ".hidden").write_text("")
    refused(lambda: Clients.from_folder(tmp_path / "empty"), "no client")
    (tmp_path / "empty" / "b.xlsx").write_text("")
    refused(lambda: Clients.from_folder(tmp_path / "empty"), "b.xlsx", ".parquet")
    if os.geteuid() != 0:
        (tmp_path / "a.csv").chmod(0)
        refused(lambda: read_rows(tmp_path / "a.csv", Columns("y")), "cannot be read")


def test_one_id_in_two_formats_is_refused(tmp_path):
    csv(tmp_path / "a.csv", table())
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    refused(lambda: Clients.from_folder(tmp_path, label="y"), "'a'", "twice")


@pytest.mark.parametrize(
    ("second", "word"),
    [("a,y\n1,0\n", "features"), ("a,c,y\n1,2,0\n", "lacks 'b' and adds 'c'"), ("b,a,y\n1,2,0\n", "another order")],
)
def test_clients_with_different_columns_are_refused(tmp_path, second, word):
    csv(tmp_path / "1.csv", table())
    csv(tmp_path / "2.csv", second)
    clients = Clients.from_folder(tmp_path, label="y")
    refused(lambda: clients.load([0, 1]), "client '2'", word)
    other = Clients.from_folder(tmp_path, label="y")
    other.load([0])
    refused(lambda: other.load([1]), "client '2'", word)


def test_load_opens_only_the_clients_asked_for(tmp_path):
    csv(tmp_path / "good.csv", table())
    csv(tmp_path / "rubbish.csv", b"\xff\xfe")
    clients = Clients.from_folder(tmp_path, label="y")
    assert clients.ids == ("good", "rubbish")
    assert clients.load([0])[0].id == "good"
    assert clients.load([]) == []
    with pytest.raises(UserError):
        clients.load([1])


def test_ten_thousand_clients_are_listed_without_being_opened(tmp_path):
    for i in range(10_000):
        (tmp_path / f"c{i:05d}.npz").touch()
    np.savez(tmp_path / "c09999.npz", X=X, y=Y)
    clients = Clients.from_folder(tmp_path)
    assert len(clients) == 10_000
    assert clients.ids[1234] == "c01234"
    assert clients.load([9_999])[0].target.size == 3


def test_one_file_by_client_column(tmp_path):
    csv(tmp_path / "all.csv", "who,a,y\nzoe,1,0\nadam,2,1\nzoe,3,1\n")
    clients = Clients.from_file(tmp_path / "all.csv", client_column="who", label="y")
    assert clients.ids == ("zoe", "adam")
    assert clients.feature_names == ("a",)
    for _ in range(2):  # the table is let go after the first time, and read again
        adam, zoe = clients.load([1, 0])
        np.testing.assert_array_equal(zoe.features, [[1], [3]])
        np.testing.assert_array_equal(adam.target, [1])
    np.testing.assert_array_equal(clients.assignment[0], [0, 2])
    parquet.write_table(
        pyarrow.table({"who": pyarrow.array(["7", "3"]).dictionary_encode(), "a": [1, 2], "y": [0, 1]}),
        tmp_path / "all.parquet",
    )
    assert Clients.from_file(tmp_path / "all.parquet", client_column="who", label="y").ids == ("7", "3")
    np.savez(tmp_path / "all.npz", X=X, y=Y, who=np.array([2, 2, 1]))
    assert Clients.from_file(tmp_path / "all.npz", client_column="who").ids == ("2", "1")


def test_missing_client_ids_are_refused(tmp_path):
    path = csv(tmp_path / "all.csv", "who,a,y\nzoe,1,0\n,2,1\n")
    refused(lambda: Clients.from_file(path, client_column="who", label="y"), "row 2", "missing")
    parquet.write_table(pyarrow.table({"who": ["a", None], "a": [1, 2], "y": [0, 1]}), tmp_path / "all.parquet")
    refused(lambda: Clients.from_file(tmp_path / "all.parquet", client_column="who", label="y"), "row 2", "missing")
    parquet.write_table(pyarrow.table({"who": [0.5, 1.5], "a": [1, 2], "y": [0, 1]}), tmp_path / "all.parquet")
    refused(lambda: Clients.from_file(tmp_path / "all.parquet", client_column="who", label="y"), "text or integers")
    csv(path, "who,a,y\n")
    refused(lambda: Clients.from_file(path, client_column="who", label="y"), "no rows")
    refused(lambda: Clients.from_file(path, label="y"), "exactly one")


def test_one_file_by_partition(tmp_path):
    path = csv(tmp_path / "all.csv", "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(100)))
    clients = Clients.from_file(path, partition=Partition("dirichlet", 4, seed=3), label="y")
    loaded = clients.load(range(4))
    assert sorted(np.concatenate([c.features[:, 0] for c in loaded]).tolist()) == list(range(100))
    np.testing.assert_array_equal(clients.label_table[1].sum(axis=0), [50, 50])


def test_arrays_in_memory():
    clients = Clients.from_arrays(
        [(X, Y), (X.tolist(), Y.astype(int))], weights=[None, [1, 2, 3]], prior_shares=[0.25, 0.75]
    )
    assert clients.ids == ("client-0", "client-1")
    assert clients.feature_names == ("x0", "x1")
    assert clients.load([0])[0].weights is None
    np.testing.assert_array_equal(clients.load([1])[0].weights, [1, 2, 3])
    np.testing.assert_array_equal(clients.prior_shares, [0.25, 0.75])
    fortran = Clients.from_arrays([ClientData("me", np.asfortranarray(X), Y)]).load([0])[0]
    assert fortran.id == "me"
    assert fortran.features.flags.c_contiguous
    for action, words in (
        (lambda: Clients.from_arrays({}), ["no client"]),
        (lambda: Clients.from_arrays([ClientData("a", X, Y), ClientData("a", X, Y)]), ["'a'", "twice"]),
        (lambda: Clients.from_arrays({"": (X, Y)}), ["missing"]),
        (lambda: Clients.from_arrays({"a": (X, Y), "b": (X[:, :1], Y)}), ["'b'", "1 features", "2"]),
        (lambda: Clients.from_arrays({"a": X}), ["pair"]),
        (lambda: Clients.from_arrays({"a": ([[1], [1, 2]], [0, 1])}), ["ragged"]),
        (lambda: Clients.from_arrays({"a": (X, Y)}, weights={"b": Y}), ["'b'"]),
        (lambda: Clients.from_arrays({"a": (X, Y)}, feature_names="ab"), ["list"]),
        (lambda: Clients.from_arrays({"a": (X, Y)}, feature_names=["a"]), ["2", "1"]),
        (lambda: Clients.from_arrays({"a": (X, Y)}, prior_shares=[0.5]), ["sum to 1"]),
        (lambda: Clients.from_arrays({"a": (X, Y)}, prior_shares=[0.5, 0.5]), ["2 prior shares"]),
        (lambda: Clients.from_arrays({"a": (X, Y), "b": (X, Y)}, prior_shares=[2.0, -1.0]), ["negative"]),
    ):
        refused(action, *words)


def test_gaussian_clients(tmp_path):
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.savez(tmp_path / "a.npz", mean=[1.0, 2.0], covariance=cov)
    np.savez(tmp_path / "b.npz", mean=[1.0, 2.0], precision=np.linalg.inv(cov))
    np.savez(tmp_path / "c.npz", mean=[1.0, 2.0], covariance=[4.0, 2.0])
    clients = Clients.from_folder(tmp_path, "gaussian")
    a, b, c = clients.load([0, 1, 2])
    assert clients.kind == "gaussian"
    assert clients.feature_names == ("x0", "x1")
    np.testing.assert_allclose(a.precision, np.linalg.inv(cov), rtol=1e-14)
    np.testing.assert_allclose(b.precision, a.precision, rtol=1e-14)
    np.testing.assert_array_equal(c.precision, [0.25, 0.5])
    csv(tmp_path / "d.csv", table())
    refused(lambda: Clients.from_folder(tmp_path, "gaussian").load([3]), "d.csv", ".npz")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"mean": [1.0]}, ["exactly one"]),
        ({"covariance": np.eye(2)}, ["exactly one"]),
        ({"mean": [0.0, 0.0], "covariance": np.eye(2), "precision": np.eye(2)}, ["exactly one"]),
        ({"mean": [0.0, 0.0], "covariance": np.eye(3)}, ["(3, 3)", "2 entries"]),
        ({"mean": [0.0, 0.0], "covariance": [[1.0, 0.5], [0.0, 1.0]]}, ["symmetric"]),
        ({"mean": [0.0, 0.0], "covariance": [[1.0, 2.0], [2.0, 1.0]]}, ["positive definite"]),
        ({"mean": [0.0, 0.0], "precision": [1.0, 0.0]}, ["positive"]),
        ({"mean": [0.0, np.nan], "precision": [1.0, 1.0]}, ["nan", "row 2"]),
        ({"mean": [], "precision": []}, ["empty"]),
        ({"mean": [0.0, 0.0], "precision": np.array([1, None])}, ["pickle"]),
    ],
)
def test_bad_gaussian_clients_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    refused(lambda: Clients.from_folder(tmp_path, "gaussian").load([0]), "a.npz", *words)


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
CELLS = st.sampled_from(
    ["1", "-2.5", "nan", "inf", "", "x", '"', "'", "1e999", "0x1p3", "\r", "\n", ";", " ", "é", "\0"]
)
CSV = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=6).map(lambda r: ("a,b,y\n" + "\n".join(r)).encode()),
)


def only_user_errors(action):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            rows = action()
        except UserError:
            return
    assert np.isfinite(rows.features).all()
    assert np.isfinite(rows.target).all()
    assert rows.features.shape[0] == rows.target.shape[0]


@FUZZ
@given(content=CSV)
def test_fuzzed_csv_never_shows_a_traceback(tmp_path, content):
    path = csv(tmp_path / "f.csv", content)
    only_user_errors(lambda: read_rows(path, Columns("y")))


@FUZZ
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), cut=st.booleans(), data=st.data())
@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_damaged_archives_never_show_a_traceback(tmp_path, kind, place, value, cut, data):
    path = tmp_path / f"f.{kind}"
    if kind == "npz":
        np.savez_compressed(path, X=X, y=Y, weights=Y, feature_names=["a", "b"])
    else:
        parquet.write_table(pyarrow.table({"a": X[:, 0], "y": Y}), path)
    content = bytearray(path.read_bytes())
    position = int(place * len(content))
    if cut:
        del content[position:]
    else:
        content[position] = value
    path.write_bytes(content)
    only_user_errors(lambda: read_rows(path, Columns("y")))


def test_imports_stay_light():
    """Neither the package nor its data and configuration import what only some runs need."""
    code = (
        "import sys, fald_hpc, fald_hpc.data, fald_hpc.config\n"
        "fald_hpc.config.example_names()\n"
        "heavy = {'mpi4py', 'matplotlib', 'arviz', 'xarray', 'pandas', 'pyarrow'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
