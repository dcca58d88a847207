"""Metastores in this process, honest and lying."""
