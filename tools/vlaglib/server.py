# SPDX-License-Identifier: BSD-2-Clause
"""`vlag run --socket PATH`: other programs ask the monitor of the machine that runs here.

A client speaks as one does on the control line (control.py): it is greeted by `.ready`, sends a
command a line and gets the answer. Commands of all clients wait in one queue, since the machine has
one line; what travels on it is the session's business.
"""

import collections
import errno
import os
import socket
import stat

from .errors import ToolError
from .machine import Line


class _Client(Line):
    def __init__(self, connection):
        connection.setblocking(False)
        super().__init__(connection)
        self.greeted = False
        self.partial = b""


class Server:
    """Listens at @path, a Unix socket, until it is closed."""

    def __init__(self, path):
        self._path, self._clients, self._questions = path, [], collections.deque()
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            _remove_stale(path)
            self._socket.bind(path)
        except OSError as error:
            self._socket.close()
            text = "is in use" if error.errno == errno.EADDRINUSE else str(error.strerror or error).lower()
            raise ToolError(f"--socket {path}: {text}") from None
        self._socket.listen(8)
        self._socket.setblocking(False)

    def fileno(self):
        return self._socket.fileno()

    @property
    def clients(self):
        return [client for client in self._clients if client.open]

    def accept(self):
        connection, _ = self._socket.accept()
        self._clients.append(_Client(connection))

    def read(self, client):
        """Takes what @client has sent."""
        *lines, client.partial = (client.partial + client.read()).split(b"\n")
        for line in lines:
            self._questions.append((client, line.rstrip(b"\r").decode("utf-8", "replace")))
        if not client.open:
            client.close()
            self._clients.remove(client)

    def greet(self, version):
        """The machine's monitor answers from now on."""
        for client in self.clients:
            if not client.greeted:
                client.greeted = True
                client.write(f".ready vlag {version}\n".encode())

    def question(self):
        """The next (client, command), or None. What cannot be one line of a command is answered."""
        while self._questions:
            client, command = self._questions.popleft()
            if command.strip():
                return client, command
            client.write(b".ok\n")
        return None

    @staticmethod
    def reply(client, answer):
        """Sends @client the Answer to its question, if it is still there."""
        lines = [("." + line if line.startswith(".") else line) for line in answer.lines]
        end = ".ok" if answer.error is None else f".error {answer.error}"
        if client.open:
            client.write(("\n".join(lines + [end]) + "\n").encode())

    def close(self):
        for client in self._clients:
            client.close()
        self._socket.close()
        try:
            os.unlink(self._path)
        except OSError:
            pass


def _remove_stale(path):
    """Removes a socket that nobody listens at any more; anything else stays, and is in use."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
