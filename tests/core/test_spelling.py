"""Test the suggestion of similar names in error messages."""

from private_consensus.cli.spelling import nearest, spelling_suggestion
from private_consensus.common.errors import InvalidInput, Refused


def test_spelling_is_suggested_only_if_the_error_lists_the_valid_names():
    assert nearest("ding_fgi5", ["ding_fig5", "wang_fig1"]) == "did you mean ding_fig5?"
    assert nearest("qqqq", ["ding_fig5"]) == ""
    assert (
        spelling_suggestion(InvalidInput("name", "rin", "one of ring, path"))
        == "did you mean ring?"
    )
    assert spelling_suggestion(InvalidInput("name", "rin", "a graph")) == ""
    assert spelling_suggestion(Refused(["a line"])) == ""
