// The duties of tests/support/registry_duties.py, by franz-go's package sr.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/encoding/protowire"
)

var (
	url, bootstrap, name = os.Args[1], os.Args[2], os.Args[3]
	client               = must(sr.NewClient(sr.URLs(url)))
	ctx, stop            = context.WithTimeout(context.Background(), 5*time.Minute)
)

const avroText = `{"type":"record","name":"User","namespace":"people","fields":[{"name":"name","type":"%s"},{"name":"age","type":"int"}%s]}`
const object = `{"title":"User","type":"object","properties":{"name":{"type":"%s"},"age":{"type":"integer"}%s},"additionalProperties":false}`
const proto = "syntax = \"proto3\";\npackage people;\n\nmessage User {\n  %s name = 1;\n  int32 age = 2;\n%s}\n"

type format struct {
	kind                               sr.SchemaType
	first, later, bad, pair, reference string
}

var formats = map[string]format{
	"avro": {
		sr.TypeAvro,
		fmt.Sprintf(avroText, "string", ""),
		fmt.Sprintf(avroText, "string", `,{"name":"mail","type":"string","default":""}`),
		fmt.Sprintf(avroText, "int", ""),
		`{"type":"record","name":"Pair","fields":[{"name":"left","type":"people.User"}]}`,
		"people.User",
	},
	"json": {
		sr.TypeJSON,
		fmt.Sprintf(object, "string", ""),
		fmt.Sprintf(object, "string", `,"mail":{"type":"string"}`),
		fmt.Sprintf(object, "integer", ""),
		`{"type":"object","properties":{"left":{"$ref":"user.json"}}}`,
		"user.json",
	},
	"protobuf": {
		sr.TypeProtobuf,
		fmt.Sprintf(proto, "string", ""),
		fmt.Sprintf(proto, "string", "  string mail = 3;\n"),
		fmt.Sprintf(proto, "int32", ""),
		"syntax = \"proto3\";\npackage people;\n\nimport \"user.proto\";\n\nmessage Pair {\n  User left = 1;\n}\n",
		"user.proto",
	},
}

type user struct {
	Name string `avro:"name" json:"name"`
	Age  int    `avro:"age" json:"age"`
}

var ada = user{"Ada Lovelace", 36}

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

func refused[T any](status, code int, what string) func(T, error) {
	return func(_ T, err error) {
		var told *sr.ResponseError
		demand(errors.As(err, &told) && told.StatusCode == status && told.ErrorCode == code, "%s: %v", what, err)
	}
}

func (one format) schema(text string) sr.Schema { return sr.Schema{Schema: text, Type: one.kind} }

func register() {
	demand(len(must(client.SupportedTypes(ctx))) >= 3, "types")
	for kind, one := range formats {
		subject := name + "-sr-" + kind
		found := must(client.CreateSchema(ctx, subject, one.schema(one.first)))
		demand(found.Version == 1, "%v", found)
		demand(must(client.RegisterSchema(ctx, subject, one.schema(one.first), -1, -1)) == found.ID, "the same id")
		demand(must(client.RegisterSchema(ctx, subject+"-full", one.schema(one.first), -1, -1)) == found.ID, "one id")
	}
}

func evolve() {
	for kind, one := range formats {
		subject := name + "-sr-" + kind
		for _, version := range []int{-1, 1} {
			demand(must(client.CheckCompatibility(ctx, subject, version, one.schema(one.later))).Is, "%s fits", kind)
		}
		demand(must(client.CreateSchema(ctx, subject, one.schema(one.later))).Version == 2, "the second version")
		demand(slices.Equal(must(client.SubjectVersions(ctx, subject)), []int{1, 2}), "versions")
		demand(len(must(client.Schemas(ctx, subject))) == 2, "schemas")
	}
}

func refuse() {
	for kind, one := range formats {
		subject := name + "-sr-" + kind
		told := must(client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, one.schema(one.bad)))
		demand(!told.Is && len(told.Messages) > 0, "%s does not fit: %v", kind, told)
		refused[sr.SubjectSchema](409, 409, kind)(client.CreateSchema(ctx, subject, one.schema(one.bad)))
		refused[sr.SubjectSchema](422, 42201, kind)(client.CreateSchema(ctx, subject, one.schema("{")))
	}
}

func lookUp() {
	for kind, one := range formats {
		subject := name + "-sr-" + kind
		latest := must(client.SchemaByVersion(ctx, subject, -1))
		demand(latest.Version == 2 && latest.Schema.Schema == one.later, "the latest: %v", latest)
		first := must(client.LookupSchema(ctx, subject, one.schema(one.first)))
		demand(first.Version == 1, "%v", first)
		byID := must(client.SchemaByID(ctx, first.ID))
		demand(byID.Schema == one.first && byID.Type == one.kind, "by id: %v", byID)
		demand(must(client.SchemaTextByID(ctx, first.ID)) == one.first, "its text")
		demand(must(client.SchemaTextByVersion(ctx, subject, 2)) == one.later, "the text of a version")
		demand(slices.Contains(must(client.SubjectsByID(ctx, first.ID)), subject), "subjects of the id")
		at := sr.SubjectVersion{Subject: subject, Version: 1}
		demand(slices.Contains(must(client.SchemaVersionsByID(ctx, first.ID)), at), "versions of the id")
		demand(slices.Contains(must(client.Subjects(ctx)), subject), "subjects")
		byGUID := must(client.SchemaByGUID(ctx, first.GUID))
		demand(byGUID.Schema.Schema == one.first, "by guid: %v", byGUID)
		demand(must(client.SchemaIDsByGUID(ctx, first.GUID))[0].ID == first.ID, "ids of the guid")
	}
	demand(slices.Contains(must(client.Contexts(ctx)), "."), "contexts")
	demand(len(must(client.AllSchemas(ctx))) > 0, "all schemas")
	refused[[]int](404, 40401, "no subject")(client.SubjectVersions(ctx, name+"-none"))
	refused[sr.SubjectSchema](404, 40402, "no version")(client.SchemaByVersion(ctx, name+"-sr-avro", 9))
	refused[sr.Schema](404, 40403, "no schema")(client.SchemaByID(ctx, 2000000))
}

func references() {
	for kind, one := range formats {
		subject, base := name+"-sr-"+kind+"-pair", name+"-sr-"+kind
		pair := one.schema(one.pair)
		pair.References = []sr.SchemaReference{{Name: one.reference, Subject: base, Version: 1}}
		found := must(client.CreateSchema(ctx, subject, pair))
		demand(slices.Equal(found.References, pair.References), "references: %v", found)
		uses := must(client.SchemaReferences(ctx, base, 1))
		demand(len(uses) == 1 && uses[0].ID == found.ID, "uses: %v", uses)
		refused[[]int](422, 42206, "what is referred to")(client.DeleteSubject(ctx, base, sr.SoftDelete))
	}
}

func config() {
	subject := name + "-config"
	for _, level := range []sr.CompatibilityLevel{sr.CompatFull, sr.CompatNone} {
		check(client.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, subject)[0].Err)
		found := client.Compatibility(ctx, subject)[0]
		demand(found.Err == nil && found.Level == level, "%v", found)
	}
	check(client.ResetCompatibility(ctx, subject)[0].Err)
	_, err := 0, client.Compatibility(ctx, subject)[0].Err
	refused[int](404, 40401, "no configuration")(0, err)
	check(client.Compatibility(ctx)[0].Err)
	check(client.SetMode(ctx, sr.ModeReadOnly, subject)[0].Err)
	one := formats["avro"]
	refused[sr.SubjectSchema](422, 42205, "read only")(client.CreateSchema(ctx, subject, one.schema(one.first)))
	check(client.ResetMode(ctx, subject)[0].Err)
	must(client.CreateSchema(ctx, subject, one.schema(one.first)))
}

func encodeProto(value any) ([]byte, error) {
	data := protowire.AppendTag(nil, 1, protowire.BytesType)
	data = protowire.AppendString(data, value.(*user).Name)
	data = protowire.AppendTag(data, 2, protowire.VarintType)
	return protowire.AppendVarint(data, uint64(value.(*user).Age)), nil
}

func decodeProto(data []byte, value any) error {
	for len(data) > 0 {
		number, _, size := protowire.ConsumeTag(data)
		data = data[size:]
		if number == 1 {
			value.(*user).Name, size = protowire.ConsumeString(data)
		} else {
			var age uint64
			age, size = protowire.ConsumeVarint(data)
			value.(*user).Age = int(age)
		}
		data = data[size:]
	}
	return nil
}

func produce(topic string, value []byte) error {
	producer := must(kgo.NewClient(kgo.SeedBrokers(bootstrap)))
	defer producer.Close()
	return producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr()
}

func encode() {
	schema := must(avro.Parse(formats["avro"].first))
	options := map[string][]sr.EncodingOpt{
		"avro": {
			sr.EncodeFn(func(value any) ([]byte, error) { return avro.Marshal(schema, value) }),
			sr.DecodeFn(func(data []byte, value any) error { return avro.Unmarshal(schema, data, value) }),
		},
		"json":     {sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal)},
		"protobuf": {sr.EncodeFn(encodeProto), sr.DecodeFn(decodeProto), sr.Index(0)},
	}
	for kind, one := range formats {
		topic := name + "-" + kind
		id := must(client.CreateSchema(ctx, topic+"-value", one.schema(one.first))).ID
		var serde sr.Serde
		serde.Register(id, &user{}, options[kind]...)
		check(produce(topic, must(serde.Encode(&ada))))
		consumer := must(kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic)))
		var found user
		fetches := consumer.PollFetches(ctx)
		check(fetches.Err())
		check(serde.Decode(fetches.Records()[0].Value, &found))
		consumer.Close()
		demand(found == ada, "%s: %v", kind, found)
	}
}

func withoutASchema() {
	for kind := range formats {
		err := produce(name+"-"+kind, []byte(`{"name":"Ada"}`))
		demand(errors.Is(err, kerr.InvalidRecord), "%s: %v", kind, err)
	}
}

func deletes() {
	subject, other := name+"-config", name+"-sr-avro-full"
	refused[[]int](404, 40405, "not deleted yet")(client.DeleteSubject(ctx, subject, sr.HardDelete))
	check(client.DeleteSchema(ctx, subject, 1, sr.SoftDelete))
	check(client.DeleteSchema(ctx, subject, 1, sr.HardDelete))
	demand(slices.Equal(must(client.DeleteSubject(ctx, other, sr.SoftDelete)), []int{1}), "a subject")
	demand(!slices.Contains(must(client.Subjects(ctx)), other), "it is gone")
	demand(slices.Contains(must(client.Subjects(sr.WithParams(ctx, sr.ShowDeleted))), other), "it is kept")
	demand(slices.Equal(must(client.DeleteSubject(ctx, other, sr.HardDelete)), []int{1}), "a subject, for good")
	refused[[]int](404, 40401, "what is gone")(client.SubjectVersions(ctx, other))
}

func main() {
	defer stop()
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
		{"encode", encode},
		{"without a schema", withoutASchema},
		{"deletion", deletes},
	} {
		each.run()
		fmt.Printf("did %s:\n", each.duty)
	}
}
