"""Hadoop's client side: its XML files, Kerberos and delegation tokens."""
