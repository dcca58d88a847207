"""What the commands of this folder do."""
