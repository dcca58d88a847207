"""What a test asks of executors, which have nothing of the tests: an expression for `eval`."""

WHERE = "(__import__('time').sleep(0.3), __import__('os').getcwd(), __import__('acidctl').__file__)[1:]"
"""The folder of an executor, and the file from which it has acidctl; after a nap, so that others get their share."""
