"""What can be stored, for hypothesis."""

from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.formats import Receiver
from leafcuttr_mqtt.storage.state import History, SessionRecord

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
times = st.integers(-1, 1 << 50)
sequences = st.integers(0, (1 << 63) - 1)
numbers = st.integers(1, (1 << 40))
pairs = st.lists(st.tuples(texts, texts), max_size=4).map(tuple)

messages = st.builds(
    Message,
    topic=texts,
    payload=st.binary(max_size=100),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    client_id=texts,
    arrived_ms=times,
    expires_ms=st.none() | times,
    payload_format=st.none() | st.integers(0, 1),
    content_type=st.none() | texts,
    response_topic=st.none() | texts,
    correlation_data=st.none() | st.binary(max_size=30),
    user_properties=pairs,
)
subscriptions = st.builds(
    Subscription,
    filter=texts,
    qos=st.integers(0, 2),
    share=st.none() | texts,
    no_local=st.booleans(),
    retain_as_published=st.booleans(),
    retain_handling=st.integers(0, 2),
    identifier=st.none() | st.integers(1, 268_435_455),
)
wills = st.builds(
    Will,
    topic=texts,
    payload=st.binary(max_size=50),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    properties=st.builds(
        Properties,
        payload_format_indicator=st.none() | st.integers(0, 1),
        message_expiry_interval=st.none() | st.integers(0, 0xFFFFFFFF),
        content_type=st.none() | texts,
        response_topic=st.none() | texts,
        correlation_data=st.none() | st.binary(max_size=20),
        will_delay_interval=st.none() | st.integers(0, 0xFFFFFFFF),
        user_properties=pairs,
    ),
)
positions = st.dictionaries(st.tuples(texts, st.integers(0, 1000)), st.integers(0, 1 << 62), max_size=3)
histories = st.builds(
    History,
    filter=texts,
    since_ms=st.none() | times,
    offset=st.integers(0, 1 << 62),
    positions=positions,
    reached=positions,
    sequence=sequences,
)
sessions = st.builds(
    SessionRecord,
    client_id=texts,
    number=numbers,
    expiry_s=st.integers(0, 0xFFFFFFFF),
    connected_ms=times,
    disconnected_ms=st.none() | times,
    subscriptions=st.lists(subscriptions, max_size=4).map(tuple),
    will=wills,
    will_due_ms=st.none() | times,
    user_name=st.none() | texts,
    who=st.none() | st.tuples(texts, texts, texts),
    sent=sequences,
    retained=st.lists(texts, max_size=3).map(tuple),
    histories=st.lists(histories, max_size=2).map(tuple),
)
identifiers = st.lists(st.integers(1, 268_435_455), min_size=1, max_size=4).map(tuple)
receivers = st.one_of(
    st.builds(Receiver, numbers, sequences, st.integers(1, 2) | st.integers(5, 6), st.just(())),
    st.builds(Receiver, numbers, sequences, st.sampled_from((9, 10, 13, 14)), identifiers),
)
