"""Write ORC files: encode rows into stripes, copy or change stripes, and add the footer."""
