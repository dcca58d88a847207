"""The folders of a user in which programs keep files, where Linux has them."""

from __future__ import annotations

import os


def user_folder(variable: str, usual: str) -> str:
    """Return the folder of acidctl, relative only if the user has no home.

    Args:
        variable: says where the folders of all programs are, if its path is absolute: ``XDG_CONFIG_HOME``.
        usual: where they are otherwise, ``~/.config``.
    """
    folder = os.environ.get(variable, "")
    if not os.path.isabs(folder):  # noqa: PTH117 - pathlib is slower to load
        folder = os.path.expanduser(usual)  # noqa: PTH111 - never raises
    return f"{folder}/acidctl"
