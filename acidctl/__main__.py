"""``python -m acidctl``."""

from acidctl.base.imports import forget_current_directory

forget_current_directory()

from acidctl.cli.main import main  # noqa: E402 - after what it needs is sure to be the right one

main()
