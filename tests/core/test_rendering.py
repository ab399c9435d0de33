"""A shared renderer draws what a process draws for itself, and is missed by nobody if it ends."""

import json
import os
import socket
import threading

import pytest

from private_consensus.plotting import rendering
from private_consensus.plotting.rendering import RENDERER, svg_of
from private_consensus.usage import used

SPECIFICATION = json.dumps(
    {"data": {"values": [{"a": 1}]}, "mark": "tick", "encoding": {"x": {"field": "a"}}}
)


@pytest.fixture
def listener(tmp_path, monkeypatch):
    """A socket that jobs are told of, with a name short enough for one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RENDERER, "renderer")
    with socket.socket(socket.AF_UNIX) as found:
        found.bind("renderer")
        found.listen()
        yield found


@pytest.fixture
def renderer(listener):
    """Somebody who draws there."""
    listener.setblocking(False)
    end, ended = os.pipe()
    serving = threading.Thread(target=rendering.serve, args=(listener, end))
    serving.start()
    yield listener
    os.close(ended)
    serving.join(60)
    os.close(end)
    assert not serving.is_alive()


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn, which costs some time."""
    monkeypatch.setattr(rendering, "_drawn", lambda text: f"<svg>{text}</svg>")


def test_a_shared_renderer_draws_the_same(renderer, monkeypatch):
    shared = svg_of(SPECIFICATION)
    monkeypatch.delenv(RENDERER)
    assert shared == svg_of(SPECIFICATION)
    assert shared.startswith("<svg")


def test_its_cpu_seconds_are_of_the_job_that_asked(renderer, drawn, monkeypatch):
    seconds = iter((10.0, 13.5))
    monkeypatch.setattr(rendering.time, "process_time", lambda: next(seconds))
    before, _ = used()
    svg_of(SPECIFICATION)
    assert used()[0] - before == pytest.approx(3.5, abs=0.5)


def test_what_cannot_be_drawn_is_told_and_the_next_is_drawn(renderer):
    with pytest.raises(ValueError, match="Vega"):
        svg_of('{"mark": 3}')
    assert svg_of(SPECIFICATION).startswith("<svg")


def test_who_asks_and_leaves_is_no_hindrance(renderer, drawn):
    for message in (b"", b"12", (50).to_bytes(rendering.HEAD, "big") + b"half"):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect("renderer")
            asker.sendall(message)
    assert svg_of("whole") == "<svg>whole</svg>"


def test_a_large_drawing_arrives_whole(renderer, drawn):
    text = "ä" * 3_000_000
    assert svg_of(text) == f"<svg>{text}</svg>"


def test_where_nobody_listens_a_process_draws_for_itself(tmp_path, drawn, monkeypatch):
    monkeypatch.setenv(RENDERER, str(tmp_path / "nobody"))
    assert svg_of("alone") == "<svg>alone</svg>"


@pytest.mark.parametrize("answer", [b"", b"1", (50).to_bytes(rendering.HEAD, "big") + b"half"])
def test_of_a_renderer_that_ends_early_no_half_answer_is_taken(listener, drawn, answer):
    def end_early():
        asker, _ = listener.accept()
        with asker:
            asker.sendall(answer)

    early = threading.Thread(target=end_early)
    early.start()
    assert svg_of("alone") == "<svg>alone</svg>"
    early.join(60)
