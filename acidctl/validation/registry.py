"""Every rule: those that the modules of ``checks`` declare. Help, man page and what shows findings use it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from acidctl.validation import checks
from acidctl.validation.rules import DECLARED, Rule, place_of

for _module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}."):
    import_module(_module.name)

RULES: dict[str, Rule] = {rule_id: DECLARED[rule_id] for rule_id in sorted(DECLARED, key=place_of)}
"""Every rule by its id, in order."""
