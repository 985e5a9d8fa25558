// What MirrorMaker 2's own classes say, for tests/forward/mm2/test_java.py. Bytes are in hexadecimal digits.
//
//   Mirror keys                        every key: class, name, type, default
//   Mirror records                     lines `kind key value` on stdin: what each record is read as
//   Mirror write                       records of each kind, as its classes write them
//   Mirror names SEPARATOR IDENTITY    topics on stdin, a line each: remote, source, upstream, original, and what they are
//   Mirror patterns                    lines `expression TAB name` on stdin: whether it fits
//   Mirror translate SERVERS ALIAS GROUP [POLICY]    RemoteClusterUtils.translateOffsets, heartbeats, upstream clusters

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.DefaultReplicationPolicy;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.IdentityReplicationPolicy;
import org.apache.kafka.connect.mirror.OffsetSync;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class Mirror {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "keys" -> keys();
            case "records" -> records();
            case "write" -> write();
            case "names" -> names(args[1], Boolean.parseBoolean(args[2]));
            case "patterns" -> patterns();
            case "translate" -> translate(args);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static List<String> input() {
        return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).lines().collect(Collectors.toList());
    }

    private static void keys() throws Exception {
        Map<String, ConfigDef> found = new TreeMap<>();
        String mirror = "org.apache.kafka.connect.mirror.";
        for (String name : List.of("MirrorSourceConfig", "MirrorCheckpointConfig", "MirrorHeartbeatConfig")) {
            found.put(name, field(mirror + name, "CONNECTOR_CONFIG_DEF"));
        }
        found.put("ConfigPropertyFilterConfig", field(mirror + "DefaultConfigPropertyFilter$ConfigPropertyFilterConfig", "DEF"));
        found.put("MirrorMakerConfig", method(mirror + "MirrorMakerConfig", "config"));
        found.put("SourceConnectorConfig", method("org.apache.kafka.connect.runtime.SourceConnectorConfig", "configDef"));
        found.put("producer", org.apache.kafka.clients.producer.ProducerConfig.configDef());
        found.put("consumer", org.apache.kafka.clients.consumer.ConsumerConfig.configDef());
        found.put("admin", org.apache.kafka.clients.admin.AdminClientConfig.configDef());
        Class<?> crypto = Class.forName("org.apache.kafka.connect.runtime.distributed.Crypto");
        Method config = Class.forName("org.apache.kafka.connect.runtime.distributed.DistributedConfig").getDeclaredMethod("config", crypto);
        config.setAccessible(true);
        found.put("DistributedConfig", (ConfigDef) config.invoke(null, crypto.getField("SYSTEM").get(null)));
        found.forEach((name, keys) -> new TreeMap<>(keys.configKeys()).values().forEach(key -> {
            if (!key.internalConfig) {
                System.out.println(String.join("\t", name, key.name, key.type.name().toLowerCase(), shown(key)));
            }
        }));
    }

    private static String shown(ConfigDef.ConfigKey key) {
        if (!key.hasDefault() || key.defaultValue == null) {
            return "null";
        }
        return "=" + ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static ConfigDef field(String name, String field) throws Exception {
        Field found = Class.forName(name).getDeclaredField(field);
        found.setAccessible(true);
        return (ConfigDef) found.get(null);
    }

    private static ConfigDef method(String name, String method) throws Exception {
        Method found = Class.forName(name).getDeclaredMethod(method);
        found.setAccessible(true);
        return (ConfigDef) found.invoke(null);
    }

    private static void records() {
        for (String line : input()) {
            String[] words = line.split(" ");
            ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("t", 0, 0, HEX.parseHex(words[1]), HEX.parseHex(words[2]));
            System.out.println(switch (words[0]) {
                case "heartbeat" -> Heartbeat.deserializeRecord(record).toString();
                case "checkpoint" -> Checkpoint.deserializeRecord(record).toString();
                default -> OffsetSync.deserializeRecord(record).toString();
            });
        }
    }

    private static void write() throws Exception {
        print("heartbeat", new Heartbeat("edge", "hub", 1_700_000_000_000L));
        print("checkpoint", new Checkpoint("readers", new TopicPartition("edge.orders", 3), 17, 11, "m\u00e9"));
        print("sync", new OffsetSync(new TopicPartition("orders", 1), 5, 4));
    }

    private static void print(String kind, Object record) throws Exception {
        System.out.println(kind + " " + bytes(record, "recordKey") + " " + bytes(record, "recordValue"));
    }

    private static String bytes(Object record, String name) throws Exception {
        Method method = record.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        return HEX.formatHex((byte[]) method.invoke(record));
    }

    private static void names(String separator, boolean identity) {
        DefaultReplicationPolicy policy = identity ? new IdentityReplicationPolicy() : new DefaultReplicationPolicy();
        Map<String, String> settings = new HashMap<>();
        settings.put("replication.policy.separator", separator);
        settings.put("source.cluster.alias", "edge");
        policy.configure(settings);
        for (String topic : input()) {
            System.out.println(String.join("\t", policy.formatRemoteTopic("edge", topic), "" + policy.topicSource(topic),
                "" + policy.upstreamTopic(topic), policy.originalTopic(topic), "" + policy.isHeartbeatsTopic(topic),
                "" + policy.isInternalTopic(topic), policy.checkpointsTopic("edge"), policy.offsetSyncsTopic("hub")));
        }
    }

    private static void patterns() {
        for (String line : input()) {
            String[] words = line.split("\t", -1);
            try {
                System.out.println(Pattern.compile(words[0]).matcher(words[1]).matches());
            } catch (PatternSyntaxException error) {
                System.out.println("refused");
            }
        }
    }

    private static void translate(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", args[1]);
        if (args.length > 4) {
            settings.put("replication.policy.class", args[4]);
        }
        new TreeMap<>(RemoteClusterUtils.translateOffsets(settings, args[2], args[3], Duration.ofSeconds(60)).entrySet().stream()
            .collect(Collectors.toMap(each -> each.getKey().toString(), each -> each.getValue().offset() + " " + each.getValue().metadata())))
            .forEach((partition, offset) -> System.out.println("offset " + partition + " " + offset));
        System.out.println("heartbeats " + String.join(",", RemoteClusterUtils.heartbeatTopics(settings).stream().sorted().toList()));
        System.out.println("checkpoints " + String.join(",", RemoteClusterUtils.checkpointTopics(settings).stream().sorted().toList()));
        System.out.println("upstream " + String.join(",", RemoteClusterUtils.upstreamClusters(settings).stream().sorted().toList()));
        System.out.println("hops " + RemoteClusterUtils.replicationHops(settings, args[2]));
    }
}
