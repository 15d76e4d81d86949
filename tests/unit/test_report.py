"""``fald report``: one page that stands alone, says what it leaves out, and never breaks on odd results."""

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

import fald_hpc
from fald_hpc import Clients, Gaussian, VRFALDStar, report
from fald_hpc.cli.main import app
from fald_hpc.drift import waiting
from fald_hpc.errors import UserError
from fald_hpc.report import costs, drift, marginals, page, ranks, selection, work
from fald_hpc.run import Run, open_run

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Structure(HTMLParser):
    """Collects tags, attributes and text; fails on elements that do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def read(text: str) -> Structure:
    """Return a page's content after checking that it is whole and stands alone."""
    found = Structure()
    found.feed(text)
    found.close()
    assert found.open == []
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    used = re.findall(r'(?:href="|url\()#([^")]+)', text)
    assert set(used) <= set(ids)
    for tag, attributes in found.tags:
        assert tag not in ("script", "link", "img", "iframe", "object")
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href"):
                assert value is not None
                assert value.startswith("#")
    assert "@import" not in text
    assert len(re.findall(r"url\((?!#)", text)) == 0
    return found


def run(out=None, d=2, chains=3, steps=4000, **options):
    """Sample a small Gaussian target."""
    rng = np.random.default_rng(1)
    clients = Clients.from_gaussians(rng.standard_normal((2, d)), precisions=np.exp(0.3 * rng.standard_normal((2, d))))
    sampler = VRFALDStar(step_size=0.2, comm_prob=0.5)
    return fald_hpc.sample(Gaussian("diagonal"), clients, sampler, steps=steps, chains=chains, out=out, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "run"
    run(place)
    return place


def test_page_of_a_run(folder):
    path = report.write(folder)
    assert path == folder / "report.html"
    found = read(path.read_text(encoding="utf-8"))
    for words in (
        "vr_fald_star on gaussian, seed 1", "comm_prob 0.5", "2 clients", "4,000 iterations", "numba",
        "Posterior", "R-hat", "Marginals", "Traces", "Rank plots", "Effective samples", "Messages (MPI_Allreduce)",
    ):  # fmt: skip
        assert words in found.text
    assert "Drift of the clients" in found.text
    assert [tag for tag, _ in found.tags].count("svg") == 5
    for row in open_run(folder).summary()["parameters"]:
        assert f"{row['r_hat']:.3f}" in found.text


def test_same_run_same_page_and_an_earlier_one_is_replaced(folder):
    first = report.write(folder).read_bytes()
    assert report.write(folder).read_bytes() == first


def test_other_files_are_not_replaced(folder, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("1,2\n")
    with pytest.raises(UserError, match=r"not a report.*--out"):
        report.write(folder, table)
    assert table.read_text() == "1,2\n"
    with pytest.raises(UserError, match="cannot write"):
        report.write(folder, tmp_path / "missing" / "a.html")
    with pytest.raises(UserError, match="holds no run"):
        report.write(tmp_path)


def test_command(folder, tmp_path):
    done = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "a.html")])
    assert done.exit_code == 0
    assert "a.html" in done.output
    read((tmp_path / "a.html").read_text(encoding="utf-8"))


def test_a_report_does_not_stand_in_the_way_of_the_next_run(tmp_path):
    place = tmp_path / "run"
    run(place)
    report.write(place)
    run(place, resume=True, steps=5000)
    report.write(place)
    run(place, overwrite=True)
    assert not (place / "report.html").exists()


def test_names_are_shown_as_they_are(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    odd = ['<b>&"bold"</b>', r"$\frac{$ _x^2 " + "long " * 20]
    for name in ("summary.json", "manifest.json"):
        content = json.loads((copy / name).read_text())
        if "clients" in content:
            content["clients"] = ["<script>alert(1)</script>", "é"]
        else:
            for row, new in zip(content["parameters"], odd, strict=True):
                row["name"] = new
        (copy / name).write_text(json.dumps(content))
    found = read(report.write(copy).read_text(encoding="utf-8"))
    assert odd[0] in found.text
    assert "<script>" in found.text


def test_warnings_are_at_the_top_and_numbers_marked(folder):
    original = open_run(folder)
    content = json.loads(json.dumps(original.summary()))
    content["parameters"][0] |= {"r_hat": 1.3, "ess": 7.0}
    content["parameters"][1] |= {"mcse": None, "ess": None}
    content["warnings"] = ["the chains disagree"]
    doubtful = Run(content, {**original.manifest, "state": "running"}, draws=np.asarray(original.draws))
    text = page.build(doubtful)
    found = read(text)
    assert found.text.index("the chains disagree") < found.text.index("MCSE")
    assert "not finished" in found.text
    assert text.count('class="doubt"') == 4
    assert "1.300 !" in found.text


@pytest.mark.parametrize(
    ("shape", "still"), [((2, 0, 2), False), ((2, 1, 2), False), ((1, 30, 2), False), ((3, 50, 2), True), ((9, 7, 2), False)]
)
def test_odd_draws(folder, shape, still):
    """No draws, one chain, chains that stand still, more chains than are drawn."""
    original = open_run(folder)
    draws = np.random.default_rng(2).standard_normal(shape)
    if still:
        draws[...] = 3.0
    found = {**original.summary(), "chains": shape[0], "records": shape[1]}
    read(page.build(Run(found, {**original.manifest, "chains": shape[0]}, draws=draws)))


def test_many_parameters(tmp_path):
    result = run(tmp_path / "run", d=20)
    content = json.loads(json.dumps(result.summary()))
    for p, row in enumerate(content["parameters"]):
        row["r_hat"] = 1.0 + (0.1 if p in (15, 17) else 0.0) + 1e-4 * p
    chosen = selection.choose(content["parameters"])
    assert chosen == [*range(12), 15, 17, 19]
    found = read(page.build(Run(content, result.manifest, draws=np.asarray(result.draws))))
    assert "first 12 of 20 parameters and the 3 others" in found.text


def test_selection_without_r_hat_and_with_an_infinite_one():
    rows = [{"r_hat": None} for _ in range(30)]
    assert selection.choose(rows) == list(range(12))
    rows = [{"r_hat": 1.0} for _ in range(30)]
    rows[20]["r_hat"] = None
    assert 20 in selection.choose(rows)


def test_rank_histograms():
    """Uniform for chains of one law, within four errors; a chain shifted by one sd leaves the band."""
    draws = np.random.default_rng(3).standard_normal((4, 4000))
    found = ranks.count(draws)
    assert found.heights.shape == (4, 20)
    np.testing.assert_allclose(found.heights.mean(axis=0), 1.0)
    assert np.abs(found.heights - 1).max() < 4 * found.error
    draws[0] += 1.0
    moved = ranks.count(draws)
    assert moved.heights[0, -1] > 1 + 8 * moved.error
    assert np.isnan(ranks.count(np.random.default_rng(4).standard_normal((4, 3))).error)


def test_density_is_one():
    values = np.random.default_rng(5).standard_normal(2000)
    points, heights = marginals.density(values, -6.0, 6.0, 500.0)
    assert abs(np.sum(heights) * (points[1] - points[0]) - 1) < 0.01
    exact = np.exp(-0.5 * points**2) / np.sqrt(2 * np.pi)
    assert np.abs(heights - exact).max() < 0.04


def test_growth_ends_at_the_summary(folder):
    result = open_run(folder)
    grown = work.growth(np.asarray(result.draws))
    rows = result.summary()["parameters"]
    np.testing.assert_allclose(grown.ess[-1], [row["ess"] for row in rows], rtol=1e-9)
    np.testing.assert_allclose(grown.mcse[-1], [row["mcse"] for row in rows], rtol=1e-9)


def test_bytes_of_a_message_are_those_of_the_plan():
    """Two chains and three parameters: 3 bins each and 3 flags, 8 bytes each."""
    manifest = {"layout": {"chain_groups": 2}, "schedule": "shared", "chains": 4, "parameters": ["a", "b", "c"]}
    assert costs.message_bytes(manifest) == 8 * 2 * (3 * 3 + 3)
    assert costs.message_bytes({**manifest, "chain_batches": {"used": 2}}) == 8 * (3 * 3 + 3)
    assert costs.message_bytes({**manifest, "schedule": "independent"}) == 8 * (3 * 3 + 3)
    assert costs.message_bytes({}) is None


def test_drift_of_the_clients(folder):
    original = open_run(folder)
    numbers = original.manifest["drift"]
    head, rows = drift.table(original.manifest)
    assert head == ["client", "distance", "heterogeneity", "corrected"]
    assert [row[1:] for row in rows] == [
        [f"{numbers[name][i]:.3g}" for name in ("distance", "heterogeneity", "corrected")] for i in range(2)
    ]
    waited = [{**waiting.record(np.array([[9.0, 3.0, 0.1], [9.0, 1.0, 0.1]]), 0, 9)}]
    manifest = {**original.manifest, "drift": {**numbers, "waiting": waited}}
    found = read(page.build(Run(original.summary(), manifest, draws=np.asarray(original.draws))))
    assert "Drift of the clients" in found.text
    assert "full gradients have no variance" in found.text
    assert "least on rank 1" in found.text
    many = {"clients": [f"c{i}" for i in range(50)], "drift": {**numbers, "distance": list(range(50)), "corrected": None}}
    assert [row[0] for row in drift.table(many)[1]] == [f"c{i}" for i in range(30, 50)]


def test_no_drift_in_the_manifest(folder):
    """Runs that are not finished, or older ones."""
    original = open_run(folder)
    for left in ({}, {"drift": {"waiting": []}}):
        manifest = {key: value for key, value in original.manifest.items() if key != "drift"} | left
        found = read(page.build(Run(original.summary(), manifest, draws=np.asarray(original.draws))))
        assert "Drift of the clients" not in found.text
