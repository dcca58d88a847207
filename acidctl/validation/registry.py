"""All rules that the modules of ``checks`` declare; help, man page and the printer of findings use them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from acidctl.validation import checks
from acidctl.validation.findings import DECLARED, Rule, place_of

for _module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}."):
    import_module(_module.name)

RULES: dict[str, Rule] = {rule_id: DECLARED[rule_id] for rule_id in sorted(DECLARED, key=place_of)}
"""Every rule by its id, in order."""
