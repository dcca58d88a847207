"""Settings: files and environment variables, checked and put in order."""
