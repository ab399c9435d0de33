"""Fixtures of the tests of the library."""

import pytest

from private_consensus.cli import main, output


@pytest.fixture
def call(capsys, monkeypatch):
    """Return a function that runs a command, with its exit code, output and errors."""
    # The console reads its width when it is created, before this fixture runs.
    monkeypatch.setattr(output.OUT, "_width", 200)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run
