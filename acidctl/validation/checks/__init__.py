"""The checks: on listings, footers, rows, several files together, and what one kind of reader refuses."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from acidctl.validation.findings import DECLARED, Rule, place_of

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)

RULES: dict[str, Rule] = {rule_id: DECLARED[rule_id] for rule_id in sorted(DECLARED, key=place_of)}
"""Every rule by its id, in order."""
