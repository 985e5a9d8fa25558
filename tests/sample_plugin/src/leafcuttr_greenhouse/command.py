"""`leafcuttr greenhouse`: sends readings to any Kafka."""

import click

from leafcuttr_greenhouse.reading import parse


@click.command()
@click.argument("readings", nargs=-1, required=True, metavar="READING...")
@click.option("--bootstrap-server", "-b", default="localhost:9092", show_default=True, metavar="HOST:PORT")
@click.option("--topic", default="greenhouse", show_default=True)
def command(readings: tuple[str, ...], bootstrap_server: str, topic: str) -> None:
    """Send readings, each as in `7 21.5`."""
    from confluent_kafka import Producer

    failed: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_server, "message.timeout.ms": 30_000})
    for text in readings:
        try:
            reading = parse(text)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        producer.produce(
            topic,
            reading.encode(),
            str(reading.sensor),
            on_delivery=lambda error, _: failed.append(str(error)) if error else None,
        )
    producer.flush()
    if failed:
        raise click.ClickException(failed[0])
    click.echo(f"{len(readings)} readings stored")
