"""Cleaning a location in tests without a lock and a log."""

from __future__ import annotations

from typing import Any

from acidctl.cleaning import apply
from acidctl.cleaning.apply import How
from acidctl.cleaning.outcomes import Cleaned
from acidctl.cleaning.plan import CleaningPlan, plan_again


def apply_plan(plan: CleaningPlan, how: How = How.TRASH, **options: Any) -> Cleaned:
    """Plan the location again, and remove the entries of the plan."""
    return apply.apply_plan(plan, plan_again(plan), how, **options)
