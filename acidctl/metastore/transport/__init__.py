"""Transports to a metastore: streams, frames, logins, HTTP."""
