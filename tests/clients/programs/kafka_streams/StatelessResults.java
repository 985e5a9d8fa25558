import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;

/**
 * What Kafka Streams makes of records without state: filter, mapValues, flatMapValues and branches, which all keep the
 * key.
 *
 * <p>Records of the topic orders come on the standard input as lines of key and value with a tab between; results go to
 * the standard output as topic, key and value. Keys and values are in Base64; a minus is null.
 */
public final class StatelessResults {
    private static final List<String> SINKS = List.of(
        "enriched-orders", "high-priority-orders", "low-priority-orders", "normal-orders", "order-items");

    private static String decoded(final String text) {
        return text.equals("-") ? null : new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
    }

    private static String encoded(final String text) {
        return text == null ? "-" : Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static List<String> items(final String order) {
        return order == null ? List.of() : List.of(order.split(",", -1));
    }

    public static void main(final String[] arguments) throws Exception {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> orders = builder.stream("orders");
        final KStream<String, String> valid = orders.filter((key, value) -> value != null && !value.isEmpty());
        valid.mapValues(value -> value.toUpperCase(Locale.ROOT)).to("enriched-orders");
        orders.flatMapValues(StatelessResults::items).to("order-items");
        final Map<String, KStream<String, String>> branches = valid.split(Named.as("branch-"))
            .branch((key, value) -> value.contains("\"priority\":\"high\""), Branched.as("high"))
            .branch((key, value) -> value.contains("\"priority\":\"low\""), Branched.as("low"))
            .defaultBranch(Branched.as("normal"));
        branches.get("branch-high").to("high-priority-orders");
        branches.get("branch-low").to("low-priority-orders");
        branches.get("branch-normal").to("normal-orders");

        final Serde<String> texts = Serdes.String();
        final Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "results");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, texts.getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, texts.getClass());
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            final TestInputTopic<String, String> input =
                driver.createInputTopic("orders", texts.serializer(), texts.serializer());
            final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                final String[] parts = line.split("\t", -1);
                input.pipeInput(decoded(parts[0]), decoded(parts[1]));
            }
            for (final String name : SINKS) {
                driver.createOutputTopic(name, texts.deserializer(), texts.deserializer())
                    .readRecordsToList()
                    .forEach(found ->
                        System.out.println(name + "\t" + encoded(found.key()) + "\t" + encoded(found.value())));
            }
        }
    }
}
