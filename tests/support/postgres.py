"""A PostgreSQL server of one's own for tests: made in a folder, reached by TCP with a password, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "p4ss-of-the-t3sts"


@dataclass(frozen=True)
class Server:
    """Where it listens."""

    port: int

    def address(self, user: str = "reader", table: str = "public.people", host: str = "127.0.0.1") -> str:
        """As a policy names a table of it."""
        return f"postgresql://{user}@{host}:{self.port}/postgres#{table}"

    def run(self, statements: str) -> str:
        """Carry out statements as the owner; what psql prints of them, without frills."""
        command = ["psql", "-qtA", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", "owner"]
        environment = os.environ | {"PGPASSWORD": PASSWORD}
        done = subprocess.run(
            [*command, "postgres"], input=statements, text=True, check=True, env=environment, capture_output=True
        )
        return done.stdout.strip()


def programs() -> Path | None:
    """Where the server's programs are; None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        Path(one) for one in [shutil.which("initdb")] if one
    ]
    return found[-1].parent if found and shutil.which("psql") else None


@contextmanager
def served() -> Iterator[Server]:
    """A running server with roles `owner`, `reader` and `stranger`; it does not run as root, and leaves nothing."""
    base = programs()
    assert base is not None
    user = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="funnel-server-") as folder:
        password = Path(folder) / "password"
        password.write_text(PASSWORD)
        if user is not None:
            account = pwd.getpwnam(user)
            for one in (folder, password):
                os.chown(one, account.pw_uid, account.pw_gid)
        data, port = f"{folder}/data", _free()
        made = [
            f"{base}/initdb",
            "-D",
            data,
            "-U",
            "owner",
            "-A",
            "scram-sha-256",
            f"--pwfile={password}",
            "--no-sync",
        ]
        subprocess.run([*made, "-E", "UTF8"], user=user, check=True, capture_output=True, cwd="/")
        options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", folder, "-F"]
        quiet = subprocess.DEVNULL
        server = subprocess.Popen(
            [f"{base}/postgres", "-D", data, *options], user=user, stdout=quiet, stderr=quiet, cwd="/"
        )
        try:
            found = Server(port)
            _wait(found, server)
            for role in ("reader", "stranger"):
                found.run(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
            yield found
        finally:
            server.send_signal(signal.SIGINT)  # it ends its connections, and then itself
            server.wait(60)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    """Until it answers."""
    for _ in range(1200):
        assert process.poll() is None, "the server ended"
        try:
            server.run("SELECT 1")
        except subprocess.CalledProcessError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not answer")
