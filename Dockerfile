# LeafCuttr in a container: built from this checkout, run without root, nothing but Python beside it.
#   docker build -t leafcuttr . && docker run -p 9092:9092 leafcuttr
# See docs/how-to/container.md.

FROM python:3.13-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY core ./core
COPY sdk ./sdk
COPY plugins ./plugins
RUN python3 -m venv /opt/leafcuttr \
    && /opt/leafcuttr/bin/pip install --no-cache-dir --disable-pip-version-check ".[all]" \
    && /opt/leafcuttr/bin/leafcuttr --version

FROM python:3.13-slim-bookworm
# The data is where compose files for Kafka mount it. A volume takes over the owner of the folder that it covers.
RUN useradd --system --user-group --uid 10001 --no-create-home leafcuttr \
    && install -d -o leafcuttr -g leafcuttr /tmp/kafka-logs
COPY --from=build /opt/leafcuttr /opt/leafcuttr
# The lowest of the three places of settings: a file of yours in its place, KAFKA_* variables and -o all win.
COPY docs/how-to/container.properties /etc/leafcuttr/server.properties
ENV PATH=/opt/leafcuttr/bin:$PATH
USER 10001:10001
VOLUME /tmp/kafka-logs
EXPOSE 9092 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python3", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:9404/health/ready', timeout=4)"]
ENTRYPOINT ["leafcuttr"]
CMD ["serve", "--config", "/etc/leafcuttr/server.properties"]
