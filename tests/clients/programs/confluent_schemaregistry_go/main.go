// The duties of tests/support/registry_duties.py, by the client of a registry in confluent-kafka-go.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	sr "github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/rest"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avrov2"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/protobuf"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
)

const patience = 60 * time.Second

var (
	url, bootstrap, name = os.Args[1], os.Args[2], os.Args[3]
	client               = fresh()
)

const avro = `{"type":"record","name":"User","namespace":"people","fields":[{"name":"name","type":"%s"},{"name":"age","type":"int"}%s]}`
const object = `{"title":"User","type":"object","properties":{"name":{"type":"%s"},"age":{"type":"integer"}%s},"additionalProperties":false}`
const proto = "syntax = \"proto3\";\npackage people;\n\nmessage User {\n  %s name = 1;\n  int32 age = 2;\n%s}\n"

type format struct{ first, later, bad, pair, reference string }

var formats = map[string]format{
	"AVRO": {
		fmt.Sprintf(avro, "string", ""),
		fmt.Sprintf(avro, "string", `,{"name":"mail","type":"string","default":""}`),
		fmt.Sprintf(avro, "int", ""),
		`{"type":"record","name":"Pair","fields":[{"name":"left","type":"people.User"}]}`,
		"people.User",
	},
	"JSON": {
		fmt.Sprintf(object, "string", ""),
		fmt.Sprintf(object, "string", `,"mail":{"type":"string"}`),
		fmt.Sprintf(object, "integer", ""),
		`{"type":"object","properties":{"left":{"$ref":"user.json"}}}`,
		"user.json",
	},
	"PROTOBUF": {
		fmt.Sprintf(proto, "string", ""),
		fmt.Sprintf(proto, "string", "  string mail = 3;\n"),
		fmt.Sprintf(proto, "int32", ""),
		"syntax = \"proto3\";\npackage people;\n\nimport \"user.proto\";\n\nmessage Pair {\n  User left = 1;\n}\n",
		"user.proto",
	},
}

// User is what is encoded.
type User struct {
	Name string `avro:"name" json:"name"`
	Age  int    `avro:"age" json:"age"`
}

var ada = User{"Ada Lovelace", 36}

func fresh() sr.Client {
	found, err := sr.NewClient(sr.NewConfig(url))
	check(err)
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](found T, err error) T {
	check(err)
	return found
}

func demand(met bool, what string, about ...any) {
	if !met {
		panic(fmt.Sprintf(what, about...))
	}
}

func refused[T any](code int, what string) func(T, error) {
	return func(_ T, err error) {
		var told *rest.Error
		demand(errors.As(err, &told) && told.Code == code, "%s: %v", what, err)
	}
}

func info(kind, text string) sr.SchemaInfo { return sr.SchemaInfo{Schema: text, SchemaType: kind} }

func register() {
	for kind, one := range formats {
		subject := name + "-" + kind
		id := must(client.Register(subject, info(kind, one.first), false))
		demand(must(fresh().Register(subject, info(kind, one.first), false)) == id, "the same id")
		demand(must(fresh().GetID(subject, info(kind, one.first), false)) == id, "the known id")
		full := must(fresh().RegisterFullResponse(subject+"-full", info(kind, one.first), false))
		demand(full.ID == id && full.Version == 1, "the full answer: %v", full)
		demand(must(fresh().GetByGUID(full.GUID)).Schema == one.first, "by its guid")
	}
}

func evolve() {
	for kind, one := range formats {
		subject := name + "-" + kind
		demand(must(client.TestSubjectCompatibility(subject, info(kind, one.later))), "%s fits", kind)
		demand(must(client.TestCompatibility(subject, 1, info(kind, one.later))), "%s fits the first", kind)
		must(client.Register(subject, info(kind, one.later), false))
		demand(slices.Equal(must(client.GetAllVersions(subject)), []int{1, 2}), "versions")
	}
}

func refuse() {
	for kind, one := range formats {
		subject := name + "-" + kind
		demand(!must(client.TestSubjectCompatibility(subject, info(kind, one.bad))), "%s does not fit", kind)
		refused[int](409, kind)(client.Register(subject, info(kind, one.bad), false))
		refused[int](42201, kind)(client.Register(subject, info(kind, "{"), false))
	}
}

func lookUp() {
	for kind, one := range formats {
		subject := name + "-" + kind
		latest := must(fresh().GetLatestSchemaMetadata(subject))
		demand(latest.Version == 2 && latest.Schema == one.later, "the latest: %v", latest)
		first := must(fresh().GetSchemaMetadata(subject, 1))
		demand(first.Schema == one.first, "the first: %v", first)
		demand(must(fresh().GetBySubjectAndID(subject, first.ID)).Schema == one.first, "by id")
		demand(must(fresh().GetVersion(subject, info(kind, one.later), false)) == 2, "its version")
		demand(slices.Contains(must(client.GetAllSubjects()), subject), "subjects")
		places := must(client.GetSubjectsAndVersionsByID(first.ID))
		demand(slices.ContainsFunc(places, func(at sr.SubjectAndVersion) bool { return at.Subject == subject }), "places")
	}
	demand(slices.Contains(must(client.GetAllContexts()), "."), "contexts")
	refused[[]int](40401, "no subject")(client.GetAllVersions(name + "-none"))
	refused[sr.SchemaMetadata](40402, "no version")(client.GetSchemaMetadata(name+"-AVRO", 9))
	refused[sr.SchemaInfo](40403, "no schema")(client.GetBySubjectAndID(name+"-AVRO", 2000000))
}

func references() {
	for kind, one := range formats {
		subject, base := name+"-"+kind+"-pair", name+"-"+kind
		pair := info(kind, one.pair)
		pair.References = []sr.Reference{{Name: one.reference, Subject: base, Version: 1}}
		id := must(client.Register(subject, pair, false))
		found := must(fresh().GetBySubjectAndID(subject, id))
		demand(slices.Equal(found.References, pair.References), "references: %v", found)
		refused[[]int](42206, "what is referred to")(client.DeleteSubject(base, false))
	}
}

func config() {
	subject := name + "-config"
	must(client.UpdateCompatibility(subject, sr.Full))
	demand(must(client.GetCompatibility(subject)) == sr.Full, "the level")
	owner := map[string]string{"owner": "Ada"}
	update := sr.ServerConfig{CompatibilityUpdate: sr.None, DefaultMetadata: &sr.Metadata{Properties: owner}}
	must(client.UpdateConfig(subject, update))
	found := must(client.GetConfig(subject, false))
	demand(found.CompatibilityLevel == sr.None && found.DefaultMetadata.Properties["owner"] == "Ada", "%v", found)
	must(client.Register(subject, info("AVRO", formats["AVRO"].first), false))
	demand(must(client.GetLatestWithMetadata(subject, owner, false)).Version == 1, "by metadata")
	must(client.GetDefaultCompatibility())
	must(client.GetDefaultConfig())
	refused[sr.ServerConfig](40401, "no configuration")(client.GetConfig(name+"-none", false))
}

func produce(topic string, value []byte, headers []kafka.Header) error {
	producer := must(kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap}))
	defer producer.Close()
	told := make(chan kafka.Event, 1)
	at := kafka.TopicPartition{Topic: &topic, Partition: 0}
	check(producer.Produce(&kafka.Message{TopicPartition: at, Value: value, Headers: headers}, told))
	return (<-told).(*kafka.Message).TopicPartition.Error
}

func consume(topic string) *kafka.Message {
	consumer := must(kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": topic}))
	defer consumer.Close()
	check(consumer.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: 0}}))
	return must(consumer.ReadMessage(patience))
}

func round(suffix string, how serde.SchemaIDSerializerFunc) {
	writer, reader := fresh(), fresh()
	{
		topic := name + "-avro" + suffix
		serializer := must(avrov2.NewSerializer(writer, serde.ValueSerde, avrov2.NewSerializerConfig()))
		serializer.SchemaIDSerializer = how
		headers, data, err := serializer.SerializeWithHeaders(topic, &ada)
		check(err)
		check(produce(topic, data, headers))
		deserializer := must(avrov2.NewDeserializer(reader, serde.ValueSerde, avrov2.NewDeserializerConfig()))
		found, user := consume(topic), User{}
		check(deserializer.DeserializeWithHeadersInto(topic, found.Headers, found.Value, &user))
		demand(user == ada, "Avro: %v", user)
	}
	{
		topic := name + "-json" + suffix
		conf := jsonschema.NewSerializerConfig()
		conf.AutoRegisterSchemas, conf.UseLatestVersion, conf.EnableValidation = false, true, true
		must(writer.Register(topic+"-value", info("JSON", formats["JSON"].first), false))
		serializer := must(jsonschema.NewSerializer(writer, serde.ValueSerde, conf))
		serializer.SchemaIDSerializer = how
		headers, data, err := serializer.SerializeWithHeaders(topic, &ada)
		check(err)
		check(produce(topic, data, headers))
		deserializer := must(jsonschema.NewDeserializer(reader, serde.ValueSerde, jsonschema.NewDeserializerConfig()))
		found, user := consume(topic), User{}
		check(deserializer.DeserializeWithHeadersInto(topic, found.Headers, found.Value, &user))
		demand(user == ada, "JSON: %v", user)
	}
	{
		// A message that is generated somewhere: its file is what is registered.
		topic := name + "-protobuf" + suffix
		serializer := must(protobuf.NewSerializer(writer, serde.ValueSerde, protobuf.NewSerializerConfig()))
		serializer.SchemaIDSerializer = how
		headers, data, err := serializer.SerializeWithHeaders(topic, &sourcecontextpb.SourceContext{FileName: ada.Name})
		check(err)
		check(produce(topic, data, headers))
		deserializer := must(protobuf.NewDeserializer(reader, serde.ValueSerde, protobuf.NewDeserializerConfig()))
		check(deserializer.ProtoRegistry.RegisterMessage((&sourcecontextpb.SourceContext{}).ProtoReflect().Type()))
		message := consume(topic)
		found := must(deserializer.DeserializeWithHeaders(topic, message.Headers, message.Value))
		demand(found.(*sourcecontextpb.SourceContext).FileName == ada.Name, "Protobuf: %v", found)
	}
}

func withoutASchema() {
	for _, kind := range []string{"avro", "json", "protobuf"} {
		err := produce(name+"-"+kind, []byte(`{"name":"Ada"}`), nil)
		var told kafka.Error
		demand(errors.As(err, &told) && int(told.Code()) == 87, "%s: %v", kind, err)
	}
}

func deletes() {
	subject, other := name+"-config", name+"-AVRO-full"
	refused[[]int](40405, "not deleted yet")(client.DeleteSubject(subject, true))
	demand(must(client.DeleteSubjectVersion(subject, 1, false)) == 1, "a version")
	demand(must(client.DeleteSubjectVersion(subject, 1, true)) == 1, "a version, for good")
	demand(slices.Equal(must(client.DeleteSubject(other, false)), []int{1}), "a subject")
	demand(!slices.Contains(must(client.GetAllSubjects()), other), "it is gone")
	demand(slices.Equal(must(client.DeleteSubject(other, true)), []int{1}), "a subject, for good")
	refused[[]int](40401, "what is gone")(fresh().GetAllVersions(other))
}

func main() {
	defer func() {
		if failed := recover(); failed != nil {
			fmt.Fprintln(os.Stderr, strings.TrimSpace(fmt.Sprint(failed)))
			os.Exit(1)
		}
	}()
	for _, each := range []struct {
		duty string
		run  func()
	}{
		{"register", register},
		{"evolve", evolve},
		{"refuse", refuse},
		{"look up", lookUp},
		{"references", references},
		{"config", config},
		{"encode", func() { round("", serde.PrefixSchemaIDSerializer) }},
		{"header", func() { round("-header", serde.HeaderSchemaIDSerializer) }},
		{"without a schema", withoutASchema},
		{"deletion", deletes},
	} {
		each.run()
		fmt.Printf("did %s:\n", each.duty)
	}
}
