// The duties of tests/support/client_duties.py, by Kafka's Java clients: those of 3.9 and of 4.3 know all that is used here.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    static final long PATIENCE = 60_000;
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final long START = System.currentTimeMillis() - 3_600_000;
    static String bootstrap;
    static String name;

    static void demand(boolean met, String what) {
        if (!met) throw new IllegalStateException(what);
    }

    static void until(String what, BooleanSupplier met) throws InterruptedException {
        for (long deadline = System.currentTimeMillis() + PATIENCE; !met.getAsBoolean(); Thread.sleep(20)) {
            demand(System.currentTimeMillis() < deadline, what + ": not in time");
        }
    }

    static Properties settings(String... more) {
        var found = new Properties();
        found.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < more.length; at += 2) found.put(more[at], more[at + 1]);
        return found;
    }

    static KafkaProducer<String, String> producer(String... more) {
        return new KafkaProducer<>(settings(more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String... more) {
        var found = settings(more);
        found.put("enable.auto.commit", "false");
        found.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(found, new StringDeserializer(), new StringDeserializer());
    }

    static String create() throws Exception {
        try (var admin = Admin.create(settings())) {
            var config = Map.of("retention.ms", "86400000", "segment.bytes", "16777216");
            admin.createTopics(List.of(new NewTopic(name, 3, (short) 1).configs(config),
                new NewTopic(name + "-group", 4, (short) 1), new NewTopic(name + "-tx", 1, (short) 1))).all().get();
            int found = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).partitions().size();
            demand(found == 3, found + " partitions");
        }
        return "";
    }

    static String value(String codec, int n) {
        return n == 89 ? null : codec + " " + n + " " + "x".repeat(200);
    }

    static byte[] bytes(Object word) {
        return word.toString().getBytes(StandardCharsets.UTF_8);
    }

    static String produce() throws Exception {
        for (int batch = 0; batch < CODECS.size(); batch++) {
            var codec = CODECS.get(batch);
            var sent = new ArrayList<Future<RecordMetadata>>();
            try (var to = producer("compression.type", codec, "linger.ms", "50")) {
                for (int n = 0; n < 90; n++) {
                    long time = START + (90 * batch + n) * 1000L;
                    var record = new ProducerRecord<>(name, n % 3, time, codec + "-" + n, value(codec, n));
                    record.headers().add("codec", bytes(codec)).add("n", bytes(n));
                    sent.add(to.send(record));
                }
                to.flush();
            }
            for (var one : sent) one.get();
        }
        return String.join(" ", CODECS);
    }

    // The next records of one partition from an offset on.
    static List<ConsumerRecord<String, String>> take(String topic, int partition, long offset, int count, String... more) {
        var got = new ArrayList<ConsumerRecord<String, String>>();
        try (var from = consumer(more)) {
            var at = new TopicPartition(topic, partition);
            from.assign(List.of(at));
            from.seek(at, offset);
            for (long deadline = System.currentTimeMillis() + PATIENCE; got.size() < count; ) {
                demand(System.currentTimeMillis() < deadline, got.size() + " of " + count + " records of " + at + " came");
                from.poll(Duration.ofMillis(200)).forEach(got::add);
            }
        }
        return got;
    }

    static String read() {
        for (int partition = 0; partition < 3; partition++) {
            var got = take(name, partition, 0, 30 * CODECS.size());
            for (int at = 0; at < got.size(); at++) {
                var record = got.get(at);
                var codec = CODECS.get(at / 30);
                int n = at % 30 * 3 + partition;
                demand(record.key().equals(codec + "-" + n), "key " + record.key());
                demand(String.valueOf(record.value()).equals(String.valueOf(value(codec, n))), "value " + record.value());
                var headers = Stream.of(record.headers().toArray())
                    .map(one -> one.key() + "=" + new String(one.value(), StandardCharsets.UTF_8)).toList();
                demand(headers.equals(List.of("codec=" + codec, "n=" + n)), "headers " + headers);
                demand(record.timestamp() == START + (at / 30 * 90 + n) * 1000L, "time " + record.timestamp());
            }
        }
        return "";
    }

    // One member of the group on a thread of its own, and what it holds and has seen.
    static class Member extends Thread implements ConsumerRebalanceListener {
        final List<Integer> seen = new ArrayList<>();
        final KafkaConsumer<String, String> from = consumer("group.id", name + "-g", "session.timeout.ms", "10000");
        volatile int holds;
        volatile boolean leaving;
        volatile RuntimeException failure;

        Member() {
            setDaemon(true); // what fails elsewhere ends the program
            start();
        }

        @Override
        public void run() {
            try (from) {
                from.subscribe(List.of(name + "-group"), this);
                while (!leaving) {
                    for (var record : from.poll(Duration.ofMillis(200))) {
                        synchronized (this) {
                            seen.add(Integer.valueOf(record.value()));
                        }
                    }
                    from.commitSync();
                }
            } catch (RuntimeException error) {
                failure = error;
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            holds = from.assignment().size();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> lost) {
            holds = from.assignment().size() - lost.size();
        }

        synchronized int count() {
            if (failure != null) throw failure;
            return seen.size();
        }

        void leave() throws InterruptedException {
            leaving = true;
            join();
            if (failure != null) throw failure;
        }
    }

    static void sendNumbers(int first, int end) throws Exception {
        var sent = new ArrayList<Future<RecordMetadata>>();
        try (var to = producer()) {
            for (int n = first; n < end; n++) {
                sent.add(to.send(new ProducerRecord<>(name + "-group", n % 4, null, String.valueOf(n))));
            }
        }
        for (var one : sent) one.get();
    }

    static String rebalance() throws Exception {
        var first = new Member();
        var second = new Member();
        until("two partitions each", () -> first.holds == 2 && second.holds == 2);
        sendNumbers(0, 200);
        until("100 records each", () -> first.count() == 100 && second.count() == 100);
        second.leave();
        until("all partitions for the one that stays", () -> first.holds == 4);
        sendNumbers(200, 400);
        until("the records of all partitions", () -> first.count() >= 300);
        first.leave();
        var all = Stream.concat(first.seen.stream(), second.seen.stream()).toList();
        demand(all.size() == 400 && new HashSet<>(all).size() == 400, all.size() + " records");
        return "";
    }

    static String commit() throws Exception {
        try (var admin = Admin.create(settings())) {
            var told = admin.listConsumerGroupOffsets(name + "-g").partitionsToOffsetAndMetadata().get();
            demand(told.size() == 4 && told.values().stream().allMatch(one -> one.offset() == 100), "committed " + told);
        }
        sendNumbers(400, 408);
        var third = new Member();
        until("what came after the commit", () -> third.count() == 8);
        third.leave();
        demand(third.seen.stream().allMatch(number -> number >= 400), third.seen + " were committed before");
        return "";
    }

    static String seek() {
        var at = new TopicPartition(name, 1);
        try (var from = consumer()) {
            var found = from.offsetsForTimes(Map.of(at, START + 30_500)).get(at);
            demand(found.offset() == 10 && found.timestamp() == START + 31_000, "found " + found);
            var later = from.offsetsForTimes(Map.of(at, START + 7_200_000)).get(at);
            demand(later == null, later + " for a time to come");
        }
        var key = take(name, 1, 10, 1).get(0).key();
        demand(key.equals("none-31"), "key " + key);
        return "";
    }

    static String transactions() throws Exception {
        try (var to = producer("transactional.id", name + "-id")) {
            to.initTransactions();
            for (var letter : List.of("a", "b", "c")) {
                to.beginTransaction();
                for (int n = 0; n < 10; n++) to.send(new ProducerRecord<>(name + "-tx", letter));
                to.flush();
                if (letter.equals("b")) to.abortTransaction();
                else to.commitTransaction();
            }
        }
        for (var one : Map.of("read_committed", 20, "read_uncommitted", 30).entrySet()) {
            int count = one.getValue();
            var letters = take(name + "-tx", 0, 0, count, "isolation.level", one.getKey()).stream()
                .map(ConsumerRecord::value).collect(Collectors.joining());
            demand(letters.equals("a".repeat(10) + "b".repeat(count - 20) + "c".repeat(10)), "records " + letters);
        }
        return "";
    }

    static String alter() throws Exception {
        try (var admin = Admin.create(settings())) {
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            var change = new AlterConfigOp(new ConfigEntry("retention.ms", "172800000"), AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
            var told = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            demand(told.get("retention.ms").value().equals("172800000")
                && told.get("segment.bytes").value().equals("16777216"), "settings " + told);
        }
        return "";
    }

    static String delete() throws Exception {
        try (var admin = Admin.create(settings())) {
            admin.deleteConsumerGroups(List.of(name + "-g")).all().get();
            admin.deleteTopics(List.of(name + "-group")).all().get();
            var groups = admin.listConsumerGroups().all().get();
            demand(groups.stream().noneMatch(one -> one.groupId().equals(name + "-g")), "the group is still listed");
            for (long deadline = System.currentTimeMillis() + PATIENCE; ; Thread.sleep(20)) {
                if (!admin.listTopics().names().get().contains(name + "-group")) break;
                demand(System.currentTimeMillis() < deadline, "the topic is still listed");
            }
        }
        return "topics groups";
    }

    static void duty(String duty, Callable<String> work) throws Exception {
        System.out.println("did " + duty + ": " + work.call());
    }

    public static void main(String[] given) throws Exception {
        bootstrap = given[0];
        name = given[1];
        duty("create", Client::create);
        duty("produce", Client::produce);
        duty("read", Client::read);
        duty("rebalance", Client::rebalance);
        duty("commit", Client::commit);
        duty("seek by time", Client::seek);
        duty("read committed", Client::transactions);
        duty("alter", Client::alter);
        duty("delete", Client::delete);
    }
}
