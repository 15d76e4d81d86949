"""The tables of ``fald bias``: no bias without its error, small ones marked, lists of settings."""

import json
import math
import re

import numpy as np
import pytest

from fald_hpc.bias import Bias, Exact, Measured
from fald_hpc.cli import bias as command
from fald_hpc.cli import bias_table
from fald_hpc.errors import UserError


def found(d: int = 2, exact: bool = True, **changes) -> Bias:
    """Return a result whose first mean is biased by 0.1 ± 0.01 and whose first sd has no error."""
    whole = Measured(np.zeros(d), np.full(d, 0.003), np.ones(d), np.array([np.nan] + [0.002] * (d - 1)))
    half = whole._replace(mean=np.array([-0.05] + [0.0] * (d - 1)), mean_error=np.full(d, 0.004))
    known = Exact(np.array([-0.1] + [0.0] * (d - 1)), np.ones(d)) if exact else None
    settings = {"step_size": 0.02, "comm_prob": 0.1, "batch_size": "full", "noise_sharing": 1.0, **changes}
    names = [f"x{p}" for p in range(d)]
    return Bias(names, "fald", settings, 1000, 4, (1, 2), whole, half, known, ["run longer"])


def test_a_bias_comes_with_its_error_or_not_at_all():
    assert bias_table.number(0.1234, 0.011) == "+0.123 ± 0.011"
    assert bias_table.number(0.02, 0.011) == "+0.020 ± 0.011 (not resolved)"
    assert bias_table.number(3.0, math.nan) == bias_table.NOT_KNOWN
    assert bias_table.number(math.nan, 1.0) == bias_table.NOT_KNOWN
    assert bias_table.number(1.23e-12, 1e-13) == "+1.23e-12 ± 1.0e-13"
    assert bias_table.number(1234.0, 120.0) == "+1234 ± 120"


def test_richardson_doubles_the_difference_and_adds_errors_in_quadrature():
    difference = found().richardson
    np.testing.assert_allclose(difference.mean, [0.1, 0.0])
    np.testing.assert_allclose(difference.mean_error, 0.01)
    np.testing.assert_allclose(found().against_exact.mean_error, 0.003)


def test_text_of_a_setting():
    text = bias_table.of_setting(found())
    assert "+0.100 ± 0.010" in text
    assert "+0.1000 ± 0.0030" in text
    assert bias_table.NOT_KNOWN in text
    assert "warning: run longer" in text
    # every signed number is followed by its error
    for number in re.finditer(r"[+-]\d+\.\d+", text):
        assert text[number.end() :].lstrip(" %").startswith("±")
    assert "exact" not in bias_table.of_setting(found(exact=False))


def test_many_parameters_show_the_largest_and_say_so():
    text = bias_table.of_setting(found(40))
    assert "12 of 40 parameters" in text
    assert "x0 " in text
    assert "x39" not in text


def test_text_over_settings():
    text = bias_table.over_settings([found(), found(comm_prob=0.5)])
    assert "+10.00 % ± 0.30 %" in text
    assert "exact" in text
    assert "Richardson" in bias_table.over_settings([found(exact=False)])


def test_json_has_null_where_an_error_is_unknown():
    rows = json.loads(json.dumps(found().to_dict(), allow_nan=False))["parameters"]
    assert rows[0]["richardson"]["mean_resolved"] is True
    assert rows[0]["richardson"]["sd_bias"] is None
    assert rows[1]["richardson"]["mean_resolved"] is False
    assert json.loads(json.dumps(found(exact=False).to_dict()))["parameters"][0]["against_exact"] is None


def test_lists_of_settings():
    made = command.variants("quickstart-regression", [], "0.1,0.5", "5, full")
    assert [(c.sampler.comm_prob, c.sampler.batch_size) for c in made] == [
        (0.1, 5), (0.1, "full"), (0.5, 5), (0.5, "full"),
    ]  # fmt: skip
    assert len(command.variants("gaussian", [], None, None)) == 1
    for text in ("0.1,,0.2", "", "2", "x"):
        with pytest.raises(UserError):
            command.variants("quickstart-regression", [], text, None)
