// The duties of tests/support/secured_duties.py, by Kafka's Java clients of 3.9 and of 4.3.

import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Secured {
    static final long PATIENCE = 60_000;
    static final Properties given = new Properties();
    static String topic;

    static void demand(boolean met, String what) {
        if (!met) throw new IllegalStateException(what);
    }

    static Properties settings(String... more) {
        var found = new Properties();
        given.forEach((name, value) -> {
            if (!name.toString().startsWith("scenario.")) found.put(name, value);
        });
        for (int at = 0; at < more.length; at += 2) found.put(more[at], more[at + 1]);
        return found;
    }

    static KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer());
    }

    static void send(KafkaProducer<String, String> to, List<String> values) throws Exception {
        var sent = new ArrayList<Future<RecordMetadata>>();
        for (var value : values) sent.add(to.send(new ProducerRecord<>(topic, value)));
        to.flush();
        for (var one : sent) one.get();
    }

    static Object rights() throws Exception {
        var numbers = new ArrayList<String>();
        for (int n = 0; n < 200; n++) numbers.add(String.valueOf(n));
        try (var to = producer()) {
            send(to, numbers);
            try {
                to.send(new ProducerRecord<>(given.getProperty("scenario.other"), "x")).get();
                demand(false, "not refused");
            } catch (ExecutionException error) {
                demand(error.getCause() instanceof TopicAuthorizationException, "not refused, but " + error.getCause());
            }
        }
        var more = settings("group.id", given.getProperty("scenario.group"),
            "enable.auto.commit", "false", "auto.offset.reset", "earliest");
        try (var from = new KafkaConsumer<>(more, new StringDeserializer(), new StringDeserializer())) {
            from.subscribe(List.of(topic));
            var got = new ArrayList<String>();
            for (long deadline = System.currentTimeMillis() + PATIENCE; got.size() < numbers.size(); ) {
                demand(System.currentTimeMillis() < deadline, got.size() + " of 200 records came");
                for (ConsumerRecord<String, String> one : from.poll(Duration.ofMillis(200))) got.add(one.value());
            }
            demand(got.equals(numbers), "other records: " + got);
            from.commitSync();
        }
        return "";
    }

    static Object again() throws Exception {
        int sent = 0;
        try (var to = producer()) {
            long ends = System.nanoTime() + (long) (1e9 * Double.parseDouble(given.getProperty("scenario.seconds")));
            for (; System.nanoTime() < ends; Thread.sleep(50), sent++) send(to, List.of("x"));
        }
        return sent;
    }

    static Object quota() throws Exception {
        try (var to = producer()) {
            for (int n = 0; n < 4; n++) {
                var values = new ArrayList<String>();
                for (int at = 0; at < 40; at++) values.add("x".repeat(1000));
                send(to, values);
            }
            for (var metric : to.metrics().entrySet()) {
                if (metric.getKey().name().equals("produce-throttle-time-max")) {
                    return Math.round((Double) metric.getValue().metricValue());
                }
            }
        }
        throw new IllegalStateException("it keeps no produce-throttle-time-max");
    }

    public static void main(String[] words) throws Exception {
        try (var file = new FileReader(words[1])) {
            given.load(file);
        }
        topic = given.getProperty("scenario.topic");
        var told = switch (words[0]) {
            case "rights" -> rights();
            case "again" -> again();
            case "quota" -> quota();
            default -> throw new IllegalArgumentException(words[0]);
        };
        System.out.println("did " + words[0] + ": " + told);
    }
}
