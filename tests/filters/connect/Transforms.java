/* What Kafka Connect's own transforms make of records without schemas.
 *
 * Each line of the input is a JSON object: "class" of the transform, its "config", and of the record "value" (JSON as a
 * text, or null), "topic" and "timestamp". For each there is a line of output: "value", "topic" and "headers", or the
 * "error" by its class.
 */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;

public class Transforms {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] words) throws Exception {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(MAPPER.writeValueAsString(result(converter, MAPPER.readTree(line))));
        }
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode result(JsonConverter converter, JsonNode given) {
        ObjectNode result = MAPPER.createObjectNode();
        try {
            String topic = given.get("topic").asText();
            JsonNode text = given.get("value");
            byte[] data = text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
            Object value = data == null ? null : converter.toConnectData(topic, data).value();
            Map<String, String> config = new HashMap<>();
            given.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().asText()));
            String name = "org.apache.kafka.connect.transforms." + given.get("class").asText();
            Transformation<SourceRecord> transform =
                (Transformation<SourceRecord>) Class.forName(name).getDeclaredConstructor().newInstance();
            transform.configure(config);
            SourceRecord record = new SourceRecord(
                Map.of(), Map.of(), topic, 0, null, null, null, value, given.get("timestamp").asLong());
            SourceRecord made = transform.apply(record);
            if (made == null) {
                result.put("dropped", true);
                return result;
            }
            byte[] out = converter.fromConnectData(topic, made.valueSchema(), made.value());
            result.put("value", out == null ? null : new String(out, StandardCharsets.UTF_8));
            result.put("topic", made.topic());
            ArrayNode headers = result.putArray("headers");
            SimpleHeaderConverter written = new SimpleHeaderConverter();
            for (Header header : made.headers()) {
                byte[] bytes = written.fromConnectHeader(topic, header.key(), header.schema(), header.value());
                headers.addArray().add(header.key()).add(bytes == null ? null : new String(bytes, StandardCharsets.UTF_8));
            }
        } catch (Exception error) {
            result.removeAll();
            result.put("error", error.getClass().getSimpleName());
        }
        return result;
    }
}
