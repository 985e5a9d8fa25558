// Joins orders with customers, `exactly_once_v2`: `Orders.java BOOTSTRAP STATE_DIRECTORY`.
//
// orders: key an order's number, value `CUSTOMER AMOUNT`. They are keyed anew by customer (a repartition topic), joined
// with the table of customers (a changelog topic) and with what was paid for the same order within an hour (a join of
// two streams, two changelogs more), and summed up by name (a repartition and a changelog topic again).

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;

public class Orders {
    public static void main(String[] given) throws InterruptedException {
        var settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "orders-app");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given[1]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.mainConsumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.mainConsumerPrefix("session.timeout.ms"), 10000);
        settings.put(StreamsConfig.mainConsumerPrefix("max.poll.records"), 100);

        var builder = new StreamsBuilder();
        KTable<String, String> customers = builder.table("customers", Materialized.as("names"));
        KStream<String, String> orders = builder.stream("orders");
        KStream<String, String> payments = builder.stream("payments");
        orders.join(payments, (order, payment) -> order,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1)),
                StreamJoined.<String, String, String>as("paid").withName("paid"))
            .map((order, value) -> KeyValue.pair(value.split(" ")[0], order + " " + value.split(" ")[1]))
            .repartition(Repartitioned.as("by-customer"))
            .join(customers, (String order, String who) -> who + " " + order)
            .map((customer, value) -> KeyValue.pair(value.split(" ")[0], value.split(" ")[2]))
            .groupByKey(Grouped.as("by-name"))
            .aggregate(() -> "0 0", (who, amount, sum) -> {
                var so = sum.split(" ");
                return (Long.parseLong(so[0]) + 1) + " " + (Long.parseLong(so[1]) + Long.parseLong(amount));
            }, Materialized.as("sums"))
            .toStream()
            .to("sums");

        var streams = new KafkaStreams(builder.build(), settings);
        var over = new CountDownLatch(1);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(30));
            over.countDown();
        }));
        streams.start();
        over.await();
    }
}
