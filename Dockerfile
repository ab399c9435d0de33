# The whole project with its locked environment: docker build --tag private-consensus .
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends fonts-dejavu-core git make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home researcher

USER researcher
WORKDIR /home/researcher/private-consensus
COPY --chown=researcher requirements.txt pyproject.toml setup.py Makefile README.md LICENSE ./
COPY --chown=researcher src src
RUN make .venv/.ready
COPY --chown=researcher . .

CMD ["make", "smoke"]
