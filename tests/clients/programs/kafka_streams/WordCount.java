// Counts words exactly once with Kafka Streams: WordCount BOOTSTRAP INPUT OUTPUT APPLICATION STATE_FOLDER [PROPERTIES]
//
// PROPERTIES is a file of more settings, for one of how it logs in.
//
// Prints each change of its state on a line of its own; ends in order on SIGTERM.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    public static void main(String[] given) throws InterruptedException, IOException {
        var settings = new Properties();
        if (given.length > 5) {
            try (var file = Files.newBufferedReader(Path.of(given[5]))) {
                settings.load(file);
            }
        }
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, given[3]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, given[4]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.REPARTITION_PURGE_INTERVAL_MS_CONFIG, 1000);
        // Each count goes out, so that the output shows every single step.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.mainConsumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.mainConsumerPrefix("session.timeout.ms"), 10000);
        settings.put(StreamsConfig.mainConsumerPrefix("max.poll.records"), 100);

        var builder = new StreamsBuilder();
        var text = Serdes.String();
        builder.stream(given[1], Consumed.with(text, text))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(text, text))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(given[2], Produced.with(text, text));

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
