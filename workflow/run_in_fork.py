"""Run a script in a fork of the process that has imported what jobs need.

    python -IS workflow/run_in_fork.py SOCKET PYTHON SCRIPT

Where nobody listens at the socket, PYTHON runs the script. It imports next to nothing, since it is
called for every job: what `socket` and `signal` import would take longer than all else it does.
`forkserver.py` is at the other end.
"""

import _signal as signal
import _socket as socket
import os
import sys

STANDARD = (0, 1, 2)


def run(path, command):
    """Exit code of a script, which has the folder, variables and open files of this process."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(path)
    except OSError:
        os.execv(command[0], command)
    # The interrupt of a terminal reaches the job too, whose answer is waited for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = [os.getcwd(), command[1], *(f"{key}={value}" for key, value in os.environ.items())]
    content = os.fsencode("\0".join(asked))
    files = b"".join(file.to_bytes(4, sys.byteorder) for file in STANDARD)
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, files)
    server.sendmsg([len(content).to_bytes(4, "big")], [rights])
    server.sendall(content)
    answer = server.recv(1)
    return answer[0] if answer else "the process that jobs are forks of has ended"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
