"""Configurations: defaults, round trips, overrides, and one clear sentence for everything that is wrong."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fald_hpc import config
from fald_hpc.errors import UserError

MINIMAL = {"target": {"potential": "logistic"}, "data": {"example": "titanic"}, "run": {"steps": 100}}


def merged(*changes):
    """Return the minimal tables with some keys replaced, each change (table, key, value)."""
    tables = json.loads(json.dumps(MINIMAL))
    for table, key, value in changes:
        tables.setdefault(table, {})[key] = value
    return tables


def refused(action, *words):
    with pytest.raises(UserError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


def write(folder, text, name="study.toml"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_defaults():
    cfg = config.from_dict(MINIMAL)
    assert cfg.to_dict() == {
        "target": {"potential": "logistic", "prior_scale": 1.0, "intercept": False},
        "data": {"example": "titanic", "standardise": False, "prior_shares": "equal"},
        "sampler": {
            "name": "vr_fald_star",
            "step_size": "auto",
            "comm_prob": 0.1,
            "refresh_prob": 0.1,
            "noise_sharing": 1.0,
            "batch_size": "full",
            "schedule": "shared",
            "init": "dispersed",
        },
        "run": {
            "steps": 100,
            "burn_in": 0.1,
            "chains": 4,
            "seed": 1,
            "chain_groups": "auto",
            "chain_batches": "auto",
            "record": "communication",
            "segment_steps": "auto",
        },
        "output": {"draws_megabytes": 64.0, "thin": 1, "covariance": "auto"},
    }
    assert cfg.potential_options == {"prior_scale": 1.0, "intercept": False}
    assert cfg.warnings == []


@pytest.mark.parametrize("name", config.example_names())
def test_examples_load_and_survive_a_round_trip(name):
    cfg = config.load(name)
    tables = json.loads(json.dumps(cfg.to_dict()))
    again = config.from_dict(tables)
    assert again.to_dict() == cfg.to_dict()
    assert again.sampler_options == cfg.sampler_options


@pytest.mark.parametrize("name", config.example_names())
def test_every_commented_line_of_an_example_is_a_valid_key(name):
    """What a user is told to uncomment must not be refused as unknown."""
    table, seen = "", 0
    for line in config.example_text(name).splitlines():
        text = line.removeprefix("# ").split("  #")[0].strip()
        if text.startswith("["):
            table = text.strip("[]")
        elif line.startswith("# ") and text.count(" = ") == 1 and text.split(" = ")[0].isidentifier():
            key, value = text.split(" = ")
            overrides = [f"{table}.{key}={value}"]
            if table == "data.partition":
                overrides = ["data.partition.scheme=dirichlet", "data.partition.clients=10", *overrides]
            try:
                config.load(name, overrides)
            except UserError as error:
                # a second source of data, or a partition without a file: known keys, but not together
                assert "[data]" in str(error)  # noqa: PT017
                assert "has no key" not in str(error)  # noqa: PT017
            seen += 1
    assert seen > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("run", "stepz", 3), ["[run]", "'stepz'", "did you mean 'steps'", "whole number", "burn_in"]),
        (("sampler", "stepsize", 0.1), ["'stepsize'", "'step_size'", '"auto"']),
        (("run", "thin", 2), ["'thin'", "belongs to [output]"]),
        (("runs", "steps", 2), ["'runs'", "did you mean 'run'", "[output]"]),
        (("run", "steps", 0), ["[run] steps = 0", "from 1"]),
        (("run", "steps", "many"), ['[run] steps = "many"', "whole number"]),
        (("run", "steps", 1.5), ["1.5", "whole number"]),
        (("run", "steps", True), ["[run] steps = true", "whole number"]),
        (("run", "steps", 2**40), ["2^40"]),
        (("run", "seed", -1), ["seed = -1", "2^64"]),
        (("run", "seed", 2**64), ["2^64"]),
        (("run", "burn_in", 1.0), ["burn_in", "[0, 1)"]),
        (("run", "burn_in", -1), ["burn_in"]),
        (("run", "burn_in", 100), ["burn_in = 100", "steps = 100"]),
        (("run", "burn_in", True), ["burn_in = true"]),
        (("run", "chains", 2**17), ["65536"]),
        (("run", "chain_groups", 5), ["chain_groups = 5", "chains = 4"]),
        (("run", "chain_batches", 0), ["chain_batches = 0", "at least 1"]),
        (("run", "record", "always"), ['"every-step"']),
        (("run", "time_limit", -3), ["seconds"]),
        (("sampler", "name", "vr_fald"), ["'vr_fald'", "did you mean 'vr_fald_star'", "fald"]),
        (("sampler", "name", 3), ["name = 3"]),
        (("sampler", "comm_prob", 0.0), ["probability in (0, 1]"]),
        (("sampler", "comm_prob", math.nan), ["probability in (0, 1]"]),
        (("sampler", "refresh_prob", 1.1), ["probability in (0, 1]"]),
        (("sampler", "noise_sharing", 1.1), ["[0, 1]"]),
        (("sampler", "step_size", -1e-3), ["positive"]),
        (("sampler", "step_size", math.inf), ["positive finite"]),
        (("sampler", "step_size", "large"), ['"auto"']),
        (("sampler", "batch_size", 0), ['"full"']),
        (("sampler", "init", []), ['"dispersed"']),
        (("sampler", "init", [1.0, "a"]), ['"dispersed"']),
        (("sampler", "init", [1.0, math.nan]), ["finite"]),
        (("target", "potential", "logit"), ["'logit'", "logistic", "custom"]),
        (("target", "prior_scale", 0), ["positive"]),
        (("target", "intercept", 1), ["true or false"]),
        (("target", "noise_sd", 1.0), ["noise_sd", "no meaning"]),
        (("target", "classes", 3), ["classes", "no meaning"]),
        (("target", "covariance", "dense"), ["covariance", "no meaning"]),
        (("target", "potential", "softmax"), ["classes is needed"]),
        (("target", "potential", "gaussian"), ["'gaussian'", "'titanic'"]),
        (("target", "potential", "custom"), ["function is needed"]),
        (("data", "example", "titanik"), ["'titanik'", "titanic"]),
        (("data", "folder", "x"), ["exactly one", "example and folder"]),
        (("data", "label", "y"), ["label", "built-in"]),
        (("data", "offset", "o"), ["offset", "'logistic'"]),
        (("data", "features", []), ["list of column names"]),
        (("data", "prior_shares", [0.5, 0.4]), ["sum to 1", "0.9"]),
        (("data", "prior_shares", [2.0, -1.0]), ["at least 0"]),
        (("data", "partition", {"scheme": "iid", "clients": 3}), ["partition", "file"]),
        (("data", "partition", {"scheme": "iid"}), ["[data.partition] clients is needed"]),
        (("data", "partition", {"scheme": "odd", "clients": 3}), ["[data.partition] scheme", "dirichlet"]),
        (("data", "partition", {"clint": 3}), ["[data.partition]", "'clint'", "'clients'"]),
        (("data", "partition", 3), ["[data] partition = 3", "table"]),
        (("output", "thin", 0), ["thin = 0"]),
        (("output", "draws_megabytes", 0), ["positive"]),
    ],
)
def test_wrong_values_are_named_with_what_is_allowed(change, words):
    refused(lambda: config.from_dict(merged(change)), *words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("sampler", "name", "fald"), ("sampler", "refresh_prob", 0.1)], ["refresh_prob", "no meaning"]),
        ([("data", "example", None), ("data", "file", "a.csv")], ["client_column", "partition"]),
        (
            [
                ("data", "example", None),
                ("data", "file", "a.csv"),
                ("data", "client_column", "c"),
                ("data", "partition", {"scheme": "iid", "clients": 2}),
            ],
            ["keep one"],
        ),
        (
            [("data", "example", None), ("data", "folder", "a"), ("data", "client_column", "c")],
            ["client_column", "file"],
        ),
        (
            [
                ("data", "example", None),
                ("data", "file", "a.csv"),
                ("data", "partition", {"scheme": "iid", "clients": 2, "alpha": 1.0}),
            ],
            ["alpha", "'iid'"],
        ),
        (
            [
                ("data", "example", None),
                ("data", "file", "a.csv"),
                ("data", "partition", {"scheme": "classes", "clients": 2}),
            ],
            ["classes_per_client"],
        ),
        (
            [("data", "example", None), ("data", "folder", "a"), ("data", "label", "y"), ("data", "weight", "y")],
            ["'y'", "twice"],
        ),
        (
            [("target", "potential", "gaussian"), ("data", "example", "gaussian"), ("sampler", "batch_size", 3)],
            ["batch_size", "full"],
        ),
        (
            [("target", "potential", "gaussian"), ("data", "example", "gaussian"), ("data", "standardise", True)],
            ["standardise"],
        ),
        (
            [
                ("target", "potential", "gaussian"),
                ("data", "example", None),
                ("data", "file", "a.npz"),
                ("data", "client_column", "c"),
            ],
            ["file", "folder"],
        ),
        ([("data", "example", "gaussian")], ["'logistic'", "'gaussian'"]),
        ([("data", "example", None)], ["exactly one", "none"]),
        ([("run", "steps", 1), ("run", "burn_in", 1)], ["burn_in"]),
        (
            [("target", "potential", "custom"), ("target", "function", "model"), ("target", "dimension", 2)],
            ["model.py:gradient"],
        ),
    ],
)
def test_contradictions_are_refused(changes, words):
    tables = merged(*changes)
    tables["data"] = {key: value for key, value in tables["data"].items() if value is not None}
    refused(lambda: config.from_dict(tables), *words)


def test_missing_tables_and_keys():
    refused(lambda: config.from_dict({}), "[target]", "missing")
    refused(lambda: config.from_dict({**MINIMAL, "run": {}}), "[run] steps is needed")
    refused(lambda: config.from_dict({**MINIMAL, "target": {}}), "[target] potential is needed")
    refused(lambda: config.from_dict({**MINIMAL, "run": 3}), "run = 3", "table")
    refused(lambda: config.from_dict({"steps": 3}), "'steps' belongs to [run]")
    refused(lambda: config.from_dict(merged(("run", "steps", 0), ("run", "chains", 0))), "1 more")


def test_burn_in_is_the_decimal_that_is_written():
    for fraction, steps, expected in ((0.1, 1000, 100), (0.29, 100, 29), (0.7, 10, 7), (0.1, 9, 0), (0.0, 5, 0)):
        assert (
            config.from_dict(merged(("run", "steps", steps), ("run", "burn_in", fraction))).run.burn_in_steps
            == expected
        )
    assert config.from_dict(merged(("run", "burn_in", 7))).run.burn_in_steps == 7


def test_refresh_follows_communication_unless_given():
    assert config.from_dict(merged(("sampler", "comm_prob", 0.3))).sampler.refresh_prob == 0.3
    cfg = config.from_dict(merged(("sampler", "comm_prob", 0.3), ("sampler", "refresh_prob", 0.5)))
    assert cfg.sampler_options["refresh_prob"] == 0.5
    assert "refresh_prob" in cfg.warnings[0]


def test_overrides(tmp_path, monkeypatch):
    cfg = config.load(
        "titanic", ["run.steps=1e5", "sampler.step_size = 0.5", "sampler.batch_size=full", "output.covariance='full'"]
    )
    assert (cfg.run.steps, cfg.sampler.step_size, cfg.sampler.batch_size) == (100_000, 0.5, "full")
    assert cfg.output.covariance == "full"
    assert "refresh_prob" not in config.load("titanic", ["sampler.name=fald"]).to_dict()["sampler"]
    refused(lambda: config.load("titanic", ["sampler.name=fald", "sampler.refresh_prob=0.1"]), "refresh_prob")
    assert config.load("quickstart-regression", ["target.potential=poisson"]).target.potential == "poisson"
    for override, word in (
        ("steps=3", "did you mean 'run.steps'"),
        ("run.steps", "table.key=value"),
        ("=3", "table.key=value"),
        ("run..steps=3", "table.key=value"),
        ("run.steps.more=3", "not a table"),
        ("run.steps=1\nchains = 2", "whole number"),
        ("run.stps=3", "did you mean 'steps'"),
        ("run=3", "name a table and a key"),
    ):
        refused(lambda override=override: config.load("titanic", [override]), word, "titanic: ")
    study = tmp_path / "study"
    study.mkdir()
    path = write(study, '[target]\npotential="logistic"\n[data]\nfolder="mine"\nlabel="y"\n[run]\nsteps=10\n')
    monkeypatch.chdir(tmp_path)
    cfg = config.load(path)
    assert cfg.path(cfg.data.folder) == study / "mine"
    cfg = config.load(path, ["data.folder=here"])
    assert cfg.path(cfg.data.folder) == tmp_path / "here"


def test_sources(tmp_path):
    refused(lambda: config.load("titanik"), "'titanic'", "quickstart-regression")
    refused(lambda: config.load(str(tmp_path / "no.toml")), "no such file")
    refused(lambda: config.load(str(tmp_path)), "folder")
    refused(lambda: config.load("\0"), "cannot be read")
    refused(lambda: config.load(write(tmp_path, "[run\n")), "study.toml", "TOML")
    refused(lambda: config.load(write(tmp_path, "a = " + "[" * 100_000)), "TOML")
    refused(lambda: config.load(write(tmp_path, "a = " + "9" * 10_000)), "study.toml")
    refused(lambda: config.load(write(tmp_path, b"\xff")), "UTF-8")
    refused(lambda: config.load(write(tmp_path, "")), "[target]")
    refused(lambda: config.example_text("gausian"), "did you mean 'gaussian'")
    text = config.example_text("titanic")
    with_mark = config.load(write(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert with_mark.to_dict() == config.load("titanic").to_dict()
    if os.geteuid() != 0:
        os.chmod(write(tmp_path, text, "secret.toml"), 0)
        refused(lambda: config.load(str(tmp_path / "secret.toml")), "cannot be read")


def test_clients_of_a_configuration(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("b", "a"):
        write(tmp_path / "mine", "y,u,v,w\n1,2,3,1\n0,1,1,2\n", f"{name}.csv")
    write(tmp_path, "y,u,v,w\n" + "".join(f"{i % 2},{i},1,1\n" for i in range(20)), "all.csv")
    common = '[target]\npotential="logistic"\n[run]\nsteps=10\n[data]\nlabel="y"\nfeatures=["v","u"]\nweight="w"\n'
    clients = config.clients(config.load(write(tmp_path, common + 'folder="mine"\nprior_shares=[0.25,0.75]\n')))
    assert clients.ids == ("a", "b")
    assert clients.feature_names == ("v", "u")
    np.testing.assert_array_equal(clients.prior_shares, [0.25, 0.75])
    np.testing.assert_array_equal(clients.load([1])[0].weights, [1, 2])
    clients = config.clients(
        config.load(write(tmp_path, common + 'file="all.csv"\n[data.partition]\nscheme="iid"\nclients=3\nseed=9\n'))
    )
    assert sum(client.target.size for client in clients.load(range(3))) == 20
    missing = config.load(write(tmp_path, common + 'folder="nowhere"\n'))
    refused(lambda: config.clients(missing), str(tmp_path / "nowhere"), "no such folder")
    shares = config.load("titanic", [f"data.prior_shares={[0.1] * 9 + [0.1]}"])
    np.testing.assert_array_equal(config.clients(shares).prior_shares, np.full(10, 0.1))
    refused(lambda: config.clients(config.load("titanic", ["data.prior_shares=[0.5, 0.5]"])), "2 prior shares")


def test_custom_potentials_are_found_beside_the_file(tmp_path):
    text = '[target]\npotential="custom"\nfunction="model.py:gradient"\ndimension=3\n[data]\nexample="titanic"\n'
    cfg = config.load(write(tmp_path, text + "[run]\nsteps=10\n"))
    assert cfg.potential_options == {"function": f"{tmp_path}/model.py:gradient", "dimension": 3, "prior_scale": 1.0}
    assert Path(cfg.to_dict()["target"]["function"].split(":")[0]) == Path("model.py")


KEYS = sorted({key for table in config.load("titanic").to_dict().values() for key in table})
VALUES = st.recursive(
    st.one_of(
        st.integers(),
        st.floats(),
        st.booleans(),
        st.text(max_size=8),
        st.dates(),
        st.sampled_from(["auto", "full", "iid"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(
    table=st.sampled_from(["target", "data", "sampler", "run", "output", "data", "other"]),
    key=st.one_of(
        st.sampled_from(
            [*KEYS, "partition", "folder", "file", "label", "features", "function", "dimension", "classes"]
        ),
        st.text(max_size=6),
    ),
    value=VALUES,
)
def test_fuzzed_values_are_accepted_or_refused_in_one_sentence(table, key, value):
    try:
        cfg = config.from_dict(merged((table, key, value)))
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    assert config.from_dict(cfg.to_dict()).to_dict() == cfg.to_dict()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(lambda s: s.encode("utf-8", "replace"))), st.data())
def test_fuzzed_files_never_show_a_traceback(tmp_path, junk, data):
    text = config.example_text("titanic").encode()
    place = data.draw(st.integers(0, len(text)))
    length = data.draw(st.sampled_from([0, 1, 5, len(text)]))
    path = write(tmp_path, text[:place] + junk + text[place + length :])
    try:
        config.load(path)
    except UserError as error:
        assert str(error).startswith(path)  # noqa: PT017


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(KEYS).map(lambda k: f"run.{k}=1")), max_size=3))
def test_fuzzed_overrides_never_show_a_traceback(overrides):
    try:
        config.load("titanic", overrides)
    except UserError as error:
        assert str(error).startswith("titanic: ")  # noqa: PT017
