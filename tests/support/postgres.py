"""A PostgreSQL server of one's own for tests: made in a folder, reached by TCP with a password, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
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

    def run(self, statements: str) -> None:
        """Carry out statements as the owner."""
        command = [
            "psql",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-U",
            "owner",
            "postgres",
        ]
        environment = os.environ | {"PGPASSWORD": PASSWORD}
        subprocess.run(command, input=statements, text=True, check=True, env=environment, capture_output=True)


def programs() -> Path | None:
    """Where the server's programs are; None where they are not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        Path(one) for one in [shutil.which("initdb")] if one
    ]
    return found[-1].parent if found and shutil.which("psql") else None


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """A running server with its data in `folder`, roles `owner` and `reader`; it does not run as root."""
    base = programs()
    assert base is not None
    user = "postgres" if os.geteuid() == 0 else None
    data = folder / "server"
    data.mkdir(mode=0o700)
    password = folder / "password"
    password.write_text(PASSWORD)
    if user is not None:
        account = pwd.getpwnam(user)
        for one in (data, password):
            os.chown(one, account.pw_uid, account.pw_gid)
        # The server's own account has to reach its folder.
        for above in (folder, *folder.parents[:3]):
            above.chmod(above.stat().st_mode | 0o011)
    initdb = [
        str(base / "initdb"),
        "-D",
        str(data),
        "-U",
        "owner",
        "-A",
        "scram-sha-256",
        f"--pwfile={password}",
        "-E",
        "UTF8",
    ]
    subprocess.run([*initdb, "--no-sync"], user=user, check=True, capture_output=True, cwd="/")
    port = _free()
    options = [
        "-p",
        str(port),
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        f"unix_socket_directories={data}",
        "-F",
    ]
    server = subprocess.Popen(
        [str(base / "postgres"), "-D", str(data), *options],
        user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip
    try:
        found = Server(port)
        _wait(found)
        found.run(
            f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'"
        )
        yield found
    finally:
        server.terminate()
        server.wait(30)


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: Server) -> None:
    """Until it answers."""
    for _ in range(1200):
        try:
            server.run("SELECT 1")
        except subprocess.CalledProcessError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not answer")
