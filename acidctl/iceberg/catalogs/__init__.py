"""Catalogs in which the copy stands."""
