"""Nodes with network stacks of their own: Linux namespaces on a bridge, whose cables can be pulled.

Needs root and `ip`; `available()` says why not.
"""

import os
import secrets
import subprocess
from functools import cache
from pathlib import Path


def ip(*arguments: str) -> None:
    """Run `ip`; it must work."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@cache
def available() -> str:
    """Return why there are no network namespaces here; empty if there are."""
    name = f"dd{secrets.token_hex(3)}"
    try:
        ip("netns", "add", name)
    except FileNotFoundError:
        return "no network namespaces: there is no `ip`"
    except subprocess.CalledProcessError as error:
        return f"no network namespaces (root is needed): {error.stderr.strip()}"
    try:
        ip("-n", name, "link", "add", "name", "bridge", "type", "bridge")
        ip("-n", name, "link", "add", "name", "cable0", "type", "veth", "peer", "name", "cable1")
    except subprocess.CalledProcessError as error:
        return f"no bridge or veth here: {error.stderr.strip()}"
    finally:
        ip("netns", "del", name)
    return ""


class Switch:
    """A network of nodes; a node that is unplugged hears nothing, and nobody is told."""

    def __init__(self) -> None:
        self._tag = f"dd{secrets.token_hex(3)}"
        self._hub = f"{self._tag}-hub"
        self._subnet = f"10.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}"
        self._namespaces = [self._hub]
        ip("netns", "add", self._hub)
        ip("-n", self._hub, "link", "add", "name", "bridge", "type", "bridge")
        ip("-n", self._hub, "link", "set", "bridge", "up")

    def address(self, number: int) -> str:
        """Return the address of a node."""
        return f"{self._subnet}.{number + 1}"

    def add(self, number: int) -> list[str]:
        """Add a node; return the prefix of commands that run on it."""
        name = f"{self._tag}-{number}"
        ip("netns", "add", name)
        self._namespaces.append(name)
        cable = f"cable{number}"
        ip(
            "-n",
            self._hub,
            "link",
            "add",
            "name",
            cable,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            name,
        )
        ip("-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            ip("-n", name, "link", "set", interface, "up")
        ip("-n", self._hub, "link", "set", cable, "up")
        self.plug(number)
        return ["ip", "netns", "exec", name]

    def unplug(self, number: int) -> None:
        """Let every packet from and to a node vanish."""
        ip("-n", self._hub, "link", "set", f"cable{number}", "nomaster")

    def plug(self, number: int) -> None:
        """Connect a node, again."""
        ip("-n", self._hub, "link", "set", f"cable{number}", "master", "bridge")

    def mute(self, number: int, towards: int) -> None:
        """Let every packet from one node to another vanish; those of the other way arrive."""
        nobody = "02:00:00:00:00:99"
        where = ("to", self.address(towards), "dev", "eth0", "lladdr", nobody, "nud", "permanent")
        ip("-n", f"{self._tag}-{number}", "neigh", "replace", *where)

    def unmute(self, number: int, towards: int) -> None:
        """Let packets from one node to another arrive again."""
        ip("-n", f"{self._tag}-{number}", "neigh", "del", self.address(towards), "dev", "eth0")

    def close(self) -> None:
        """Remove all of it."""
        for name in self._namespaces:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def mount(source: Path, target: str) -> list[str]:
    """Return the prefix of a command that sees `source` at `target`; for nobody else anything changes."""
    script = 'mount --make-rprivate / && mount --bind "$0" "$1" && shift && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, str(source), target]


def mounts() -> str:
    """Return why there are no mount namespaces here; empty if there are."""
    try:
        command = [*mount(Path("/proc/self/mounts"), "/etc/hosts"), "true"]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        return "no mount namespaces: there is no `unshare`"
    except subprocess.CalledProcessError as error:
        return f"no mount namespaces (root is needed, uid is {os.getuid()}): {error.stderr.strip()}"
    return ""
