"""Tables to try things on: the walk-through table and large generated ones."""
