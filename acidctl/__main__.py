"""``python -m acidctl``."""

from acidctl.cli.main import main

main()
