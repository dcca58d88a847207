"""What is asked again is asked again at once."""

from support.trouble.retries import asked_again_at_once  # noqa: F401  (the fixture)
