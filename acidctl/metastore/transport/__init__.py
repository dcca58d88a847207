"""How bytes come to a metastore: streams, frames, logins, HTTP."""
