import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.Stores;

/**
 * What Kafka Streams makes of records, for each operation with state that the pipelines of Spark have.
 *
 * <p>Records come on the standard input as lines of topic, key, value and time with tabs between; a value of a backslash
 * and N is null. Results go to the standard output as name, key, time and value. Sizes are those of the test.
 */
public final class StatefulResults {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration GRACE = Duration.ofSeconds(5);

    private static void windowed(final KTable<Windowed<String>, Long> table, final String name) {
        table.toStream()
            .map((window, sum) -> new KeyValue<>(
                window.key() + "|" + window.window().start() + "|" + window.window().end(),
                sum == null ? null : sum.toString()))
            .to(name, Produced.with(TEXT, TEXT));
    }

    private static Materialized<String, Long, ?> sums() {
        return Materialized.with(TEXT, Serdes.Long());
    }

    @SuppressWarnings("unchecked")
    public static void main(final String[] arguments) throws Exception {
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<String, String> texts = Consumed.with(TEXT, TEXT);
        final KStream<String, String> orders = builder.stream("orders", texts);
        final KGroupedStream<String, String> grouped = orders.groupByKey(Grouped.with(TEXT, TEXT));
        windowed(grouped.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), GRACE))
            .aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value),
                (Materialized) sums()), "tumbling");
        windowed(grouped.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), GRACE)
                .advanceBy(Duration.ofSeconds(4)))
            .aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value),
                (Materialized) sums()), "hopping");
        windowed(grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(3), GRACE))
            .aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value),
                (Materialized) sums()), "sliding");
        windowed(grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(4), GRACE))
            .aggregate(() -> 0L, (key, value, sum) -> sum + Long.parseLong(value),
                (key, one, other) -> one + other, (Materialized) sums()), "sessions");
        grouped.count().toStream().mapValues(String::valueOf).to("count", Produced.with(TEXT, TEXT));
        grouped.reduce((kept, value) -> Long.parseLong(value) > Long.parseLong(kept) ? value : kept)
            .toStream().to("largest", Produced.with(TEXT, TEXT));

        final KStream<String, String> payments = builder.stream("payments", texts);
        final JoinWindows within = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(6), GRACE);
        final StreamJoined<String, String, String> as = StreamJoined.with(TEXT, TEXT, TEXT);
        orders.join(payments, (one, other) -> one + "," + other, within, as)
            .to("inner", Produced.with(TEXT, TEXT));
        orders.leftJoin(payments, (one, other) -> one + "," + other, within, as)
            .to("left", Produced.with(TEXT, TEXT));
        orders.outerJoin(payments, (one, other) -> one + "," + other, within, as)
            .to("full", Produced.with(TEXT, TEXT));

        final KTable<String, String> customers = builder.table("customers", texts,
            Materialized.<String, String>as(
                Stores.persistentVersionedKeyValueStore("customers-store", Duration.ofDays(1)))
                .withKeySerde(TEXT).withValueSerde(TEXT));
        final Joined<String, String, String> joined = Joined.with(TEXT, TEXT, TEXT);
        orders.join(customers, (one, other) -> one + "," + other, joined)
            .to("inner-lookup", Produced.with(TEXT, TEXT));
        orders.leftJoin(customers, (one, other) -> one + "," + other, joined)
            .to("left-lookup", Produced.with(TEXT, TEXT));

        final KTable<String, String> people = builder.table("people", texts);
        final KTable<String, String> cities = builder.table("cities", texts);
        people.join(cities, (one, other) -> one + "," + other).toStream()
            .to("inner-tables", Produced.with(TEXT, TEXT));
        people.leftJoin(cities, (one, other) -> one + "," + other).toStream()
            .to("left-tables", Produced.with(TEXT, TEXT));

        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "results");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TEXT.getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, TEXT.getClass());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("results").toString());
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            final Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
            final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                final String[] parts = line.split("\t", -1);
                inputs.computeIfAbsent(parts[0],
                        name -> driver.createInputTopic(name, TEXT.serializer(), TEXT.serializer()))
                    .pipeInput(parts[1], parts[2].equals("\\N") ? null : parts[2], Long.parseLong(parts[3]));
            }
            for (final String name : new String[] {"tumbling", "hopping", "sliding", "sessions", "count", "largest",
                "inner", "left", "full", "inner-lookup", "left-lookup", "inner-tables", "left-tables"}) {
                driver.createOutputTopic(name, TEXT.deserializer(), TEXT.deserializer())
                    .readRecordsToList()
                    .forEach(found -> System.out.println(name + "\t" + found.key() + "\t" + found.timestamp() + "\t"
                        + (found.value() == null ? "\\N" : found.value())));
            }
        }
    }
}
