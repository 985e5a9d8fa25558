import com.hivemq.client.mqtt.MqttClient;
import com.hivemq.client.mqtt.datatypes.MqttQos;
import com.hivemq.client.mqtt.mqtt3.Mqtt3BlockingClient;
import com.hivemq.client.mqtt.mqtt5.Mqtt5BlockingClient;
import com.hivemq.client.mqtt.mqtt5.datatypes.Mqtt5UserProperties;
import com.hivemq.client.mqtt.mqtt5.message.connect.Mqtt5Connect;
import com.hivemq.client.mqtt.mqtt5.message.connect.connack.Mqtt5ConnAck;
import com.hivemq.client.mqtt.mqtt5.message.disconnect.Mqtt5DisconnectReasonCode;
import com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5PayloadFormatIndicator;
import com.hivemq.client.mqtt.mqtt5.message.publish.Mqtt5Publish;
import com.hivemq.client.mqtt.MqttGlobalPublishFilter;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The duties of tests/support/mqtt_duties.py, by HiveMQ's client: HOST PORT PREFIX. */
public class Client {
    static final long PATIENCE_MS = 60_000;
    static String host, prefix;
    static int port;

    static void demand(boolean met, Object... what) {
        if (!met) throw new IllegalStateException(List.of(what).toString());
    }

    static void until(String what, BooleanSupplier met) throws InterruptedException {
        for (long end = System.currentTimeMillis() + PATIENCE_MS; !met.getAsBoolean(); Thread.sleep(10))
            demand(System.currentTimeMillis() < end, what, "not in time");
    }

    static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(String::valueOf).collect(Collectors.toList());
    }

    /** A connection and all that it was sent. */
    static class One {
        final Mqtt5BlockingClient client;
        final Mqtt5ConnAck connack;
        final List<Mqtt5Publish> got = Collections.synchronizedList(new ArrayList<>());

        /** expiry: seconds that the session lasts; 0: a clean start. will: its payload, or null. */
        One(String id, long expiry, String will) {
            client = MqttClient.builder().useMqttVersion5().serverHost(host).serverPort(port)
                .identifier((prefix + "-" + id).replace('/', '-')).buildBlocking();
            client.toAsync().publishes(MqttGlobalPublishFilter.ALL, got::add);
            var connect = Mqtt5Connect.builder().cleanStart(expiry == 0).sessionExpiryInterval(expiry).keepAlive(20);
            if (will != null)
                connect = connect.willPublish()
                    .topic(prefix + "/will").qos(MqttQos.AT_LEAST_ONCE).payload(will.getBytes()).applyWillPublish();
            connack = client.connect(connect.build());
        }

        One(String id) {
            this(id, 0, null);
        }

        void subscribe(String filter, int qos) {
            client.subscribeWith().topicFilter(filter).qos(MqttQos.fromCode(qos)).send();
        }

        void send(String topic, String text, int qos, boolean retain) {
            var sent = client.publishWith()
                .topic(topic).qos(MqttQos.fromCode(qos)).payload(text.getBytes()).retain(retain).send();
            demand(sent.getError().isEmpty(), sent);
        }

        List<String> texts() {
            synchronized (got) {
                return got.stream().map(one -> new String(one.getPayloadAsBytes())).collect(Collectors.toList());
            }
        }

        List<String> until(String what, int count) throws InterruptedException {
            Client.until(what, () -> got.size() >= count);
            return texts();
        }

        void end() {
            client.disconnect();
        }
    }

    static void connect() {
        var one = new One("connect");
        demand(!one.connack.isSessionPresent(), "a session that was never made");
        one.end();
        Mqtt3BlockingClient old = MqttClient.builder().useMqttVersion3()
            .serverHost(host).serverPort(port).identifier((prefix + "-old").replace('/', '-')).buildBlocking();
        demand(!old.connect().isSessionPresent(), "a session that was never made");
        old.disconnect();
        var unnamed = MqttClient.builder().useMqttVersion5().serverHost(host).serverPort(port).buildBlocking();
        demand(unnamed.connect().getAssignedClientIdentifier().isPresent(), "no client id was assigned");
        unnamed.disconnect();
    }

    static void quality(int qos) throws InterruptedException {
        One listener = new One("listener"), sender = new One("sender");
        listener.subscribe(prefix + "/qos/+", qos);
        for (var text : numbers(30)) sender.send(prefix + "/qos/" + qos, text, qos, false);
        var found = listener.until("QoS " + qos, 30);
        demand(found.equals(numbers(30)), found);
        for (var one : listener.got) demand(one.getQos().getCode() == qos && !one.isRetain(), one);
        listener.end();
        sender.end();
    }

    static void retained() throws InterruptedException {
        var sender = new One("sender");
        var topic = prefix + "/retained";
        sender.send(topic, "first", 1, true);
        sender.send(topic, "last", 1, true);
        var late = new One("late");
        late.subscribe(topic, 1);
        var found = late.until("the retained message", 1);
        demand(found.get(0).equals("last") && late.got.get(0).isRetain(), found);
        sender.send(topic, "", 1, true);
        var later = new One("later");
        later.subscribe(topic, 1);
        sender.send(topic, "live", 1, false);
        found = later.until("a live message", 1);
        demand(found.get(0).equals("live") && !later.got.get(0).isRetain(), found);
        for (var one : List.of(sender, late, later)) one.end();
    }

    static void will() throws InterruptedException {
        var witness = new One("witness");
        witness.subscribe(prefix + "/will", 1);
        new One("polite", 0, "polite").end();
        // The client has no way to break its connection; this reason asks for the will as a broken one does.
        new One("broken", 0, "broken").client.disconnectWith()
            .reasonCode(Mqtt5DisconnectReasonCode.DISCONNECT_WITH_WILL_MESSAGE).send();
        var found = witness.until("the will", 1);
        demand(found.get(0).equals("broken"), found);
        witness.end();
    }

    static void resume() throws InterruptedException {
        var first = new One("lasting", 300, null);
        demand(!first.connack.isSessionPresent(), "a session before the first one");
        first.subscribe(prefix + "/resumed", 2);
        first.end();
        var sender = new One("sender");
        var sent = new ArrayList<String>();
        for (int qos : List.of(1, 2))
            for (var number : numbers(10)) {
                sent.add(qos + "-" + number);
                sender.send(prefix + "/resumed", qos + "-" + number, qos, false);
            }
        var again = new One("lasting", 300, null);
        demand(again.connack.isSessionPresent(), "the session is gone");
        var found = again.until("what came meanwhile", sent.size());
        demand(found.equals(sent), found);
        again.end();
        var clean = new One("lasting");
        demand(!clean.connack.isSessionPresent(), "a clean start has kept the session");
        clean.end();
        sender.end();
    }

    static void shared() throws InterruptedException {
        var members = List.of(new One("member-1"), new One("member-2"));
        for (var one : members) one.subscribe("$share/" + prefix.replace('/', '-') + "/" + prefix + "/shared", 1);
        var sender = new One("sender");
        for (var text : numbers(60)) sender.send(prefix + "/shared", text, 1, false);
        until("the shared messages", () -> members.stream().mapToInt(one -> one.got.size()).sum() >= 60);
        var found = members.stream().flatMap(one -> one.texts().stream()).map(Integer::valueOf).sorted()
            .map(String::valueOf).collect(Collectors.toList());
        demand(found.equals(numbers(60)), found);
        for (var one : members) {
            demand(!one.got.isEmpty(), "one member got nothing");
            one.end();
        }
        sender.end();
    }

    static void properties() throws InterruptedException {
        One listener = new One("listener"), sender = new One("sender");
        listener.subscribe(prefix + "/properties", 1);
        var user = Mqtt5UserProperties.builder().add("unit", "celsius").add("unit", "kelvin").build();
        sender.client.publish(Mqtt5Publish.builder().topic(prefix + "/properties").qos(MqttQos.AT_LEAST_ONCE)
            .payload("{}".getBytes()).contentType("application/json").responseTopic(prefix + "/answers")
            .correlationData(new byte[] {0, 1, -1}).userProperties(user).messageExpiryInterval(300)
            .payloadFormatIndicator(Mqtt5PayloadFormatIndicator.UTF_8).build());
        listener.until("the message with properties", 1);
        var found = listener.got.get(0);
        demand(found.getContentType().get().toString().equals("application/json"), found);
        demand(found.getResponseTopic().get().toString().equals(prefix + "/answers"), found);
        var correlation = new byte[3];
        found.getCorrelationData().get().get(correlation);
        demand(java.util.Arrays.equals(correlation, new byte[] {0, 1, -1}), found);
        demand(Objects.equals(found.getUserProperties(), user), found);
        demand(found.getPayloadFormatIndicator().get() == Mqtt5PayloadFormatIndicator.UTF_8, found);
        var expiry = found.getMessageExpiryInterval().getAsLong();
        demand(expiry > 200 && expiry <= 300, expiry);
        listener.end();
        sender.end();
    }

    interface Duty {
        void run() throws Exception;
    }

    static void duty(String name, Duty duty) throws Exception {
        duty.run();
        System.out.println("did " + name + ":");
    }

    public static void main(String[] arguments) throws Exception {
        host = arguments[0];
        port = Integer.parseInt(arguments[1]);
        prefix = arguments[2];
        duty("connect", Client::connect);
        for (int qos : List.of(0, 1, 2)) duty("QoS " + qos, () -> quality(qos));
        duty("retained", Client::retained);
        duty("will", Client::will);
        duty("session resume", Client::resume);
        duty("shared subscription", Client::shared);
        duty("properties", Client::properties);
        System.exit(0);
    }
}
