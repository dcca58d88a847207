"""Cleaning: plan, quarantine or delete, restore."""
