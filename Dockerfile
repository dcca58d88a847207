# All commands of acidctl. Before: `pip wheel --no-deps --wheel-dir dist .`
FROM python:3.12-slim-trixie
COPY requirements/container.txt dist/acidctl-*.whl /tmp/
RUN pip install --no-cache-dir --require-hashes -r /tmp/container.txt && pip install --no-cache-dir --no-deps /tmp/acidctl-*.whl
# Java starts no Spark for a user without a name, and some commands keep files in the home.
RUN useradd --uid 1000 --create-home acidctl
USER acidctl
ENTRYPOINT ["acidctl"]
