"""What reaches the two streams: data, messages, tables that fit, progress, and no secret among them."""
