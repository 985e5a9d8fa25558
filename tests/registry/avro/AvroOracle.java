import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/** Asked by test_oracle.py: each line of the input is a question in JSON, each line of the output its answer. */
public class AvroOracle {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode answer = MAPPER.createObjectNode();
      try {
        JsonNode question = MAPPER.readTree(line);
        switch (question.get("ask").asText()) {
          case "parse" -> parse(question, answer);
          case "compare" -> compare(question, answer);
          case "decode" -> decode(question, answer);
          default -> throw new IllegalArgumentException(line);
        }
      } catch (Exception | StackOverflowError error) {
        answer.removeAll();
        answer.put("error", error.toString());
      }
      out.println(MAPPER.writeValueAsString(answer));
    }
  }

  private static Schema schema(JsonNode references, String text, List<Schema> found) {
    Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR);
    parser.setValidateDefaults(true);
    for (JsonNode one : references) {
      found.add(parser.parse(one.asText()));
    }
    return parser.parse(text);
  }

  private static Schema schema(JsonNode question, String key) {
    return schema(MAPPER.createArrayNode(), question.get(key).asText(), new ArrayList<>());
  }

  private static void parse(JsonNode question, ObjectNode answer) {
    List<Schema> references = new ArrayList<>();
    Schema schema = schema(question.get("references"), question.get("text").asText(), references);
    answer.put("canonical", schema.toString(references, false));
    answer.put("resolved", schema.toString());
    answer.put("logical", schema.getLogicalType() == null ? null : schema.getLogicalType().getName());
  }

  private static void compare(JsonNode question, ObjectNode answer) {
    var result = SchemaCompatibility
        .checkReaderWriterCompatibility(schema(question, "reader"), schema(question, "writer")).getResult();
    ArrayNode found = answer.putArray("differences");
    for (var one : result.getIncompatibilities()) {
      found.addArray().add(one.getType().toString()).add(one.getLocation());
    }
  }

  private static void decode(JsonNode question, ObjectNode answer) throws Exception {
    Schema schema = schema(question, "text");
    byte[] data = Base64.getDecoder().decode(question.get("data").asText());
    var decoder = DecoderFactory.get().binaryDecoder(data, null);
    Object value = new GenericDatumReader<>(schema).read(null, decoder);
    if (!decoder.isEnd()) {
      throw new IllegalStateException("bytes are left");
    }
    var out = new ByteArrayOutputStream();
    JsonEncoder encoder = EncoderFactory.get().jsonEncoder(schema, out);
    new GenericDatumWriter<>(schema).write(value, encoder);
    encoder.flush();
    answer.put("value", out.toString(StandardCharsets.UTF_8));
  }
}
