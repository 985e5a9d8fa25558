"""A plugin with settings of every kind, whose service notes what it sees of them. Its source, to be installed."""

SOURCE = """
from leafcuttr_sdk import Plugin, ServiceSpec, Setting, Type

PLUGIN = Plugin("acme", 1, "Anvils and their delivery")
P = "lc.plugin.acme."
BROKERS = []  # the views that services were made with
CHANGES = []  # what on_change was called with


def even(value):
    return None if value % 2 == 0 else f"{value} is odd"


def strong(value):
    return f"{value} is too short" if value is not None and len(value) < 8 else None


def leafcuttr_register_settings():
    yield Setting(P + "weight", Type.INT, 2, "The weight of an anvil.", unit="kg", minimum=1, check=even, dynamic=True)
    yield Setting(P + "maker", Type.STRING, "Acme", "Who makes them.")
    yield Setting(P + "secret", Type.PASSWORD, None, "The word that opens the store.", check=strong, dynamic=True)
    yield Setting(P + "towns", Type.LIST, ("Bath", "Wells"), "Where they are sold.", dynamic=True)
    yield Setting(P + "route.<town>", Type.STRING, None, "The way to a town.", dynamic=True)
    yield Setting(P + "colour", Type.STRING, "red", "The colour of all.", choices=("red", "blue"), dynamic=True)


def leafcuttr_register_topic_settings():
    yield Setting(P + "colour", Type.STRING, "red", "The colour for a topic.", choices=("red", "blue"))
    yield Setting(P + "labels", Type.LIST, ("new",), "What is written on them.")
    yield Setting(P + "limit", Type.LONG, 10, "How many of them.", minimum=0)
    yield Setting(P + "token", Type.PASSWORD, None, "A secret of the topic.", check=strong)
    yield Setting(P + "map.<key>", Type.INT, None, "A number for each key.")


class Store:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        import trio

        BROKERS.append(self.broker)
        end = self.broker.settings.on_change(CHANGES.append)
        try:
            task_status.started()
            await trio.sleep_forever()
        finally:
            end()


def leafcuttr_register_services():
    return [ServiceSpec("acme", Store)]
"""
