"""Fuzz the command line: every input gives an exit code and at most one line, no traceback."""

import contextlib
import io
import socket
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import cases, soon

from private_consensus import cli

NUMBERS = st.sampled_from(["0", "-1", "1", "2", "3", "1.5", "1e12", "1000000000", "inf", "-inf",
                           "nan", "1e-300", "1e300", "", "x", "1e-5", "0.5"])  # fmt: skip
SIZES = st.sampled_from(["0", "-1", "1", "2", "3", "1.5", "1000000000", "99999999999", "x"])
WORDS = st.sampled_from(["nope", "", "gradient_descent", "d_zoa", "ring", "single", "erdos_renyi",
                         "random_edges", "edges", "mean_estimation", "lasso", "released",
                         "internal", "normalised_error", "../x", "\x00", "é", "-"])  # fmt: skip
PATHS = st.sampled_from(["nope", "", "\x00", "http://[", "http://127.0.0.1:1/", "file:///nope",
                         "/dev/null", "ftp://x", "/proc/1/mem"])  # fmt: skip
PARTS = st.sampled_from(["algorithm", "problem", "network", "budget", ""])
KEYS = st.sampled_from(["records", "dim", "box", "decay", "probability", "edges", "scale", "name",
                        "agents", "weights", "x", "prepared", ""])  # fmt: skip
VALUES = st.sampled_from(["1", "-1", "1.5", "x", "true", "null", "[]", "[[1,2]]", "{}", "1e12",
                          "1000000000", "nan", "NaN", "Infinity", '"ring"', ""])  # fmt: skip
SETTINGS = st.builds("{}.{}={}".format, PARTS, KEYS, VALUES)


def options(**kinds):
    """Draw some options of a command with values."""
    option = st.one_of(*(st.tuples(st.just(f"--{name}"), kind) for name, kind in kinds.items()))
    return st.lists(option, max_size=4).map(lambda pairs: [text for pair in pairs for text in pair])


SMALL = ["--horizon", "2", "--runs", "2", "--agents", "3"]
SET_UP = options(
    epsilon=NUMBERS, delta=NUMBERS, horizon=SIZES, agents=SIZES, seed=SIZES, runs=SIZES,
    network=WORDS, problem=WORDS, metric=WORDS, set=SETTINGS,
)  # fmt: skip
COMMANDS = st.one_of(
    st.tuples(st.just(["run", "gradient_descent", *SMALL]), SET_UP),
    st.tuples(WORDS.map(lambda word: ["run", word, *SMALL]), SET_UP),
    st.tuples(st.just(["statement"]), WORDS.map(lambda word: [word])),
    st.tuples(st.just(["compare"]), PATHS.map(lambda path: [path])),
    st.tuples(st.just(["compare", "results/reference", "--reference"]), PATHS.map(lambda p: [p])),
    st.lists(WORDS, max_size=3).map(lambda words: (words, [])),
)  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run commands in a temporary folder and without network access."""

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "no network here")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)


@pytest.fixture(scope="module")
def known_loops(tmp_path_factory):
    """Compile the loops of the commands before their time limit applies."""
    with contextlib.chdir(tmp_path_factory.mktemp("known")):
        for name in ("gradient_descent", "d_zoa"):
            assert cli.main(["run", name, *SMALL]) == 0


@pytest.mark.usefixtures("known_loops")
@cases(50)
@given(COMMANDS)
def test_any_command_line_gives_an_exit_code_and_no_traceback(typed):
    arguments = [*typed[0], *typed[1]]
    out, err = io.StringIO(), io.StringIO()
    with (
        soon(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        try:
            code = cli.main(arguments)
        except SystemExit as exit_error:
            code = exit_error.code
    assert code in (0, 1, 2)
    if code == 2:
        assert err.getvalue().strip()
        error_lines = [
            line for line in err.getvalue().splitlines() if line.startswith("private-consen")
        ]
        assert len(error_lines) == len(set(error_lines))  # one line per mistake
