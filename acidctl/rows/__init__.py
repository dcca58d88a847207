"""What a location says: delete sets, row ids of files without them, merge-on-read."""
