"""The environment inside the sandbox: the given one, with a home, temporary folders and a user name that exist
there."""

from __future__ import annotations

from collections.abc import Mapping

_POINTS_OUTSIDE = ("DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK", "TMP", "TEMP")
# Variables that the shell, bubblewrap and the interpreter add on the way.
ADDED_ON_THE_WAY = ("PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE")
USER_NAME = "agent"


def inside(env: Mapping[str, str], home: str, *, renamed: bool, furnished: bool = False) -> dict[str, str]:
    """`furnished`: the home was made for this process, so its variables about places in the home are kept."""
    kept = {name: value for name, value in env.items() if name not in _POINTS_OUTSIDE}
    names = {"USER": USER_NAME, "LOGNAME": USER_NAME} if renamed else {}
    places = {
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
    }
    chosen = {name: env[name] for name in places if furnished and name in env}
    return {
        **kept,
        **names,
        "HOME": home,
        "TMPDIR": "/tmp",  # noqa: S108
        **places,
        **chosen,
        "XDG_RUNTIME_DIR": "/tmp/run",  # noqa: S108
    }
