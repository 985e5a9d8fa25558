// Transactions of Kafka's own producer: Transact BOOTSTRAP TOPIC TRANSACTIONS RECORDS SIZE
//
// Prints one JSON object. The first fifth is for warming up and is not counted.

import java.util.Arrays;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Transact {
    public static void main(String[] given) {
        var topic = given[1];
        int count = Integer.parseInt(given[2]), records = Integer.parseInt(given[3]), warm = count / 5;
        var body = new byte[Integer.parseInt(given[4])];
        Arrays.fill(body, (byte) 'a');
        var settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("transactional.id", topic);
        settings.put("linger.ms", 0);
        var took = new long[count - warm];
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (int i = 0; i < count; i++) {
                long began = System.nanoTime();
                producer.beginTransaction();
                for (int r = 0; r < records; r++) producer.send(new ProducerRecord<>(topic, 0, null, body));
                producer.commitTransaction();
                if (i >= warm) took[i - warm] = System.nanoTime() - began;
            }
        }
        double seconds = 0;
        for (long each : took) seconds += each / 1e9;
        Arrays.sort(took);
        System.out.printf("{\"transactions_per_s\": %.1f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}%n",
            took.length / seconds, took[took.length / 2] / 1e6, took[took.length * 99 / 100] / 1e6);
    }
}
