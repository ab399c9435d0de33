"""A script in a fork does what it does in a process of its own; neither outlives its caller."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from scratch import ROOT

from private_consensus.plotting.rendering import RENDERER

PROGRAMS = ROOT / "workflow"
PRELOADED = "private_consensus.algorithms.dp_ci"
PATIENCE = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    scripts = folder / "imports.py"
    scripts.write_text("import colorsys\nraise SystemExit('only what it imports is run')\n")
    process = subprocess.Popen(
        [sys.executable, PROGRAMS / "forkserver.py", "socket", "2", scripts], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdin=subprocess.PIPE,
    )  # fmt: skip
    wait_for((folder / "socket").exists)
    yield folder / "socket"
    # The last job may still be ending: its caller knows its result a moment before.
    wait_for(lambda: len(psutil.Process(process.pid).children()) == 2)
    renderers = psutil.Process(process.pid).children()
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert not list(folder.glob("socket*"))
    assert psutil.wait_procs(renderers, timeout=PATIENCE)[1] == []


def wait_for(happened) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def asked(socket: Path, script: Path) -> list[str]:
    return [sys.executable, "-IS", str(PROGRAMS / "run_in_fork.py"), socket, sys.executable, script]


def forked(socket: Path, folder: Path, text: str, **options) -> subprocess.CompletedProcess:
    script = folder / "script.py"
    script.write_text(text)
    # The name of a socket is short, as the workflow's is, which is relative to its folder.
    path = os.path.relpath(socket, folder)
    command = asked(path, script)
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, **options
    )


def test_a_fork_has_imports_and_all_else_of_its_caller(server, tmp_path):
    text = (
        "import os, sys\n"
        f"print(sys.modules.keys() >= {{'{PRELOADED}', 'colorsys', 'snakemake.script'}})\n"
        "print(os.getcwd(), os.environ['MINE'], 'PATH' in os.environ, sys.argv, sys.path[0])\n"
        "print(__name__, sys.stdin.read(), os.getpgrp())\n"
        "print('said', file=sys.stderr)\n"
    )
    done = forked(server, tmp_path, text, env={"MINE": "a=b"}, input="heard")
    folder, script = str(tmp_path), str(tmp_path / "script.py")
    assert done.stdout.splitlines() == [
        "True", f"{folder} a=b False {[script]} {folder}", f"__main__ heard {os.getpgrp()}",
    ]  # fmt: skip
    assert (done.stderr, done.returncode) == ("said\n", 0)


def test_a_fork_has_what_compiles_and_what_audits_learn_with(server, tmp_path):
    text = (
        "import sys\n"
        "from private_consensus.fast import compiling\n"
        "before = set(sys.modules)\n"
        "compiling.begin()\n"
        "from private_consensus.privacy.audit.distinguishers import fit_distinguishers\n"
        "import numpy\n"
        "fit_distinguishers(*numpy.random.default_rng(0).normal(size=(2, 40, 2)), seed=0)\n"
        "new = set(sys.modules) - before\n"
        "print([name for name in new if name.startswith(('numba.', 'sklearn.'))])\n"
    )
    assert forked(server, tmp_path, text).stdout == "[]\n"


def test_forks_know_nothing_of_each_other(server, tmp_path):
    text = "import colorsys\nprint(hasattr(colorsys, 'changed'))\ncolorsys.changed = 1\n"
    assert [forked(server, tmp_path, text).stdout for _ in range(2)] == ["False\n"] * 2


@pytest.mark.parametrize(
    "text, code, said",
    [
        ("raise SystemExit(3)", 3, ""),
        ("import sys; sys.exit('epsilon: found -1')", 1, "epsilon: found -1\n"),
        ("import os; os.kill(os.getpid(), 9)", 137, ""),
    ],
)
def test_a_fork_ends_like_a_process(server, tmp_path, text, code, said):
    done = forked(server, tmp_path, text)
    assert (done.returncode, done.stderr) == (code, said)


def test_what_is_to_be_done_at_the_end_is_done(server, tmp_path):
    text = (
        "import atexit, sys, threading, time\n"
        "atexit.register(print, 'last', end='')\n"
        "threading.Thread(target=lambda: (time.sleep(0.1), print('waited for'))).start()\n"
        "print('first')\n"
        "sys.stderr.write('said')\n"
    )
    done = forked(server, tmp_path, text)
    assert (done.stdout, done.stderr, done.returncode) == ("first\nwaited for\nlast", "said", 0)


def test_an_error_is_told_in_full(server, tmp_path):
    done = forked(server, tmp_path, "def broken():\n    return 1 / 0\nbroken()")
    assert done.returncode == 1
    assert "in broken" in done.stderr
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_who_kills_the_caller_kills_the_job(server, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    path = os.path.relpath(server, tmp_path)
    with subprocess.Popen(asked(path, script), cwd=tmp_path, stdout=subprocess.PIPE) as caller:
        job = int(caller.stdout.readline())
        os.kill(job, 0)
        caller.send_signal(signal.SIGKILL)
    wait_for(lambda: not Path("/proc", str(job)).exists())


def test_without_a_server_the_script_has_a_process_of_its_own(tmp_path):
    text = f"import sys\nprint('{PRELOADED}' in sys.modules)\nsys.exit(4)"
    done = forked(tmp_path / "nobody", tmp_path, text)
    assert (done.stdout, done.returncode) == ("False\n", 4)


FIGURE = """
from pathlib import Path

import altair as alt
import vl_convert

from private_consensus.plotting.theme import save


def draw(*marks):
    points = [alt.Chart(alt.Data(values=[{"a": 1, "b": 2}])).encode(x="a:Q", y="b:Q")] * len(marks)
    layers = [getattr(one, f"mark_{mark}")(clip=True) for one, mark in zip(points, marks)]
    kinds = {kind: Path(f"{marks[0]}.{kind}") for kind in ("svg", "png", "pdf")}
    save(alt.layer(*layers), json_path=Path(f"{marks[0]}.json"), **kinds)


"""
OWN = "draw('line', 'bar')\ndraw('point', 'tick')\n"
SHARED = (
    "def refused(specification):\n    raise AssertionError('starts a renderer of its own')\n\n\n"
    f"vl_convert.vegalite_to_svg = refused\n{OWN}"
)


def test_figures_of_forks_are_drawn_by_a_process_that_stays_as_by_their_own(server, tmp_path):
    folders = [tmp_path / name for name in ("own", "first", "second")]
    for folder, text in zip(folders, (OWN, SHARED, SHARED), strict=True):
        folder.mkdir()
        address = os.path.relpath(f"{server}.svg", folder)
        named = {} if text is OWN else {RENDERER: address}
        done = forked(server, folder, FIGURE + text, env=named)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / "script.py").unlink()
    own, *others = [{f.name: f.read_bytes() for f in sorted(x.iterdir())} for x in folders]
    assert len(own) == 2 * 4
    assert others == [own, own]


def test_a_specification_that_cannot_be_drawn_is_told_by_who_draws(server, tmp_path):
    text = (
        "from private_consensus.plotting.rendering import svg_of\n"
        "try:\n    svg_of('{\"mark\": 3}')\nexcept ValueError as error:\n    print(error)\n"
    )
    own = forked(server, tmp_path, text, env={})
    shared = forked(
        server, tmp_path, text, env={RENDERER: os.path.relpath(f"{server}.svg", tmp_path)}
    )
    assert own.stdout and (own.stdout, own.stderr) == (shared.stdout, shared.stderr)


def test_a_caller_that_asks_for_nothing_disturbs_no_other(server, tmp_path):
    address = os.path.relpath(server)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(address)
    assert forked(server, tmp_path, "print('here')").stdout == "here\n"


def test_jobs_end_one_by_one_whichever_began_first(server, tmp_path):
    long, short = tmp_path / "long.py", tmp_path / "short.py"
    long.write_text("import sys\nprint('begun', flush=True)\nsys.stdin.read()\nsys.exit(5)\n")
    short.write_text("import sys\nsys.exit(6)\n")
    path = os.path.relpath(server, tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(asked(path, long), cwd=tmp_path, **pipes) as first:
        assert first.stdout.readline() == b"begun\n"
        assert subprocess.run(asked(path, short), cwd=tmp_path, timeout=PATIENCE).returncode == 6
        first.stdin.close()
        assert first.wait(PATIENCE) == 5
