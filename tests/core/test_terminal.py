"""Test the display of docstrings in a terminal."""

import inspect
import re
import sys

import pytest

from private_consensus import algorithms, problems
from private_consensus.api.terminal import first_sentence, formula, rendered
from private_consensus.common.errors import InvalidInput, Refused
from private_consensus.common.spelling import nearest, spelling_suggestion


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\tfrac12 \sum_{d \in D_i} \|x - d\|_2^2", "1/2 ∑_(d ∈Dᵢ) ‖x - d‖₂²"),
        (r"\hat x_i = \arg\min f_i(x) + a_i^T x", "x̂ᵢ = arg min fᵢ(x) + aᵢᵀ x"),
        (r"\frac{a + b}{c\sqrt{2\rho_2}}", "(a + b)/(c√(2ρ₂))"),
        (r"\varepsilon^2/(4\ln(1/\delta)), \qquad t \le T", "ε²/(4ln(1/δ)), t ≤T"),
        (r"x &= 1 \\ y &= \mathrm{Proj}(x)", "x = 1\ny = Proj(x)"),
        (r"\{1, 2\} \in\mathcal{N}", "{1, 2} ∈N"),
        (r"\theta^{t-t_0}", "θ^(t-t₀)"),
    ],
)
def test_latex_formulas_are_rendered_as_unicode_text(latex, text):
    assert formula(latex) == text


def test_a_displayed_formula_is_rendered_on_separate_lines():
    text = "Before\n\n.. math::\n    x &= 1 \\\\\n    y &= 2\n\nafter :math:`\\sigma` and ``name``."
    assert rendered(text) == "Before\n\n    x = 1\n    y = 2\n\nafter σ and name."


@pytest.mark.parametrize("name", [*algorithms.names(), *problems.names()])
def test_rendered_descriptions_contain_no_latex_or_markup(name):
    if name in algorithms.names():
        built = algorithms.load(name)
        documented = [sys.modules[built.__module__], built]
    else:
        documented = [problems.load(name), problems.load(name).build]
    for documented_object in documented:
        text = rendered(inspect.getdoc(documented_object) or "")
        assert not re.search(r"\\[a-zA-Z]|``|:\w+:`|\.\. math|\0", text)
    first = first_sentence(inspect.getdoc(documented[0]))
    assert len(first) > 25 and "\n" not in first


def test_spelling_is_suggested_only_if_the_error_lists_the_valid_names():
    assert nearest("ding_fgi5", ["ding_fig5", "wang_fig1"]) == "did you mean ding_fig5?"
    assert nearest("qqqq", ["ding_fig5"]) == ""
    assert (
        spelling_suggestion(InvalidInput("name", "rin", "one of ring, path"))
        == "did you mean ring?"
    )
    assert spelling_suggestion(InvalidInput("name", "rin", "a graph")) == ""
    assert spelling_suggestion(Refused(["a line"])) == ""
