// The duties of tests/support/registry_duties.py, by Confluent's client of a registry, with kafkajs.
const { create, createFileRegistry, createMutableRegistry } = require("@bufbuild/protobuf");
const { FileDescriptorProtoSchema, FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");
const { Kafka, logLevel } = require("kafkajs");
const {
  AvroDeserializer,
  AvroSerializer,
  HeaderSchemaIdSerializer,
  JsonDeserializer,
  JsonSerializer,
  ProtobufDeserializer,
  ProtobufSerializer,
  SchemaRegistryClient,
  SerdeType,
} = require("@confluentinc/schemaregistry");

const [url, bootstrap, name] = process.argv.slice(2);
const fresh = () => new SchemaRegistryClient({ baseURLs: [url] });
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 2 } });
const client = fresh();

const record = (...fields) => JSON.stringify({ type: "record", name: "User", namespace: "people", fields });
const avro = record({ name: "name", type: "string" }, { name: "age", type: "int", default: 0 });
const object = (properties) => JSON.stringify({ title: "User", type: "object", properties, additionalProperties: false });
const proto = (type, more = "") =>
  `syntax = "proto3";\npackage people;\n\nmessage User {\n  ${type} name = 1;\n  int32 age = 2;\n${more}}\n`;
const formats = {
  AVRO: [
    avro,
    record(...JSON.parse(avro).fields, { name: "mail", type: "string", default: "" }),
    record({ name: "name", type: "int" }),
    record({ name: "user", type: "people.User" }).replace('"User"', '"Pair"'),
    "people.User",
  ],
  JSON: [
    object({ name: { type: "string" }, age: { type: "integer" } }),
    object({ name: { type: "string" }, age: { type: "integer" }, mail: { type: "string" } }),
    object({ name: { type: "integer" }, age: { type: "integer" } }),
    object({ user: { $ref: "user.json" } }),
    "user.json",
  ],
  PROTOBUF: [
    proto("string"),
    proto("string", "  string mail = 3;\n"),
    proto("int32"),
    'syntax = "proto3";\npackage people;\n\nimport "user.proto";\n\nmessage Pair {\n  User user = 1;\n}\n',
    "user.proto",
  ],
};
const types = Object.keys(formats);

function demand(met, what) {
  if (!met) throw new Error(what);
}

function same(found, wanted, what) {
  const [a, b] = [found, wanted].map((each) => JSON.stringify(each));
  demand(a === b, `${what}: ${a} is not ${b}`);
}

async function refused(promise, status, code, what) {
  let error;
  await promise.catch((found) => (error = found));
  demand(error, `${what}: not refused`);
  same([error.status, error.errorCode], [status, code], what);
  return error.message;
}

const schemaOf = (type, at) => ({ schema: formats[type][at], schemaType: type });

async function register() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    const id = await client.register(subject, schemaOf(type, 0));
    same(await fresh().register(subject, schemaOf(type, 0)), id, "the id of the same one");
    same(await client.getId(subject, schemaOf(type, 0)), id, "the id that is known");
    const full = await fresh().registerFullResponse(`${subject}-full`, schemaOf(type, 0));
    same([full.id, full.version], [id, 1], "the full answer");
    same((await fresh().getByGuid(full.guid)).schema, formats[type][0], "by its guid");
  }
}

async function evolve() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    demand(await client.testSubjectCompatibility(subject, schemaOf(type, 1)), `${type} fits`);
    demand(await client.testCompatibility(subject, 1, schemaOf(type, 1)), `${type} fits the first`);
    await client.register(subject, schemaOf(type, 1));
    same(await client.getAllVersions(subject), [1, 2], "versions");
  }
}

async function refuse() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    demand(!(await client.testSubjectCompatibility(subject, schemaOf(type, 2))), `${type} does not fit`);
    await refused(client.register(subject, schemaOf(type, 2)), 409, 409, type);
    await refused(client.register(subject, { schema: "{", schemaType: type }), 422, 42201, `bad ${type}`);
  }
}

async function lookUp() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    const latest = await fresh().getLatestSchemaMetadata(subject);
    same([latest.version, latest.schema], [2, formats[type][1]], "the latest");
    const first = await fresh().getSchemaMetadata(subject, 1);
    same(first.schema, formats[type][0], "the first");
    same((await fresh().getBySubjectAndId(subject, first.id)).schema, first.schema, "by id");
    same(await fresh().getVersion(subject, schemaOf(type, 1)), 2, "its version");
    demand((await client.getAllSubjects()).includes(subject), "subjects");
  }
  await refused(client.getAllVersions(`${name}-none`), 404, 40401, "no subject");
  await refused(client.getSchemaMetadata(`${name}-AVRO`, 9), 404, 40402, "no version");
  await refused(client.getBySubjectAndId(`${name}-AVRO`, 2000000), 404, 40403, "no schema");
}

async function references() {
  for (const type of types) {
    const [subject, base] = [`${name}-${type}-pair`, `${name}-${type}`];
    const pair = { ...schemaOf(type, 3), references: [{ name: formats[type][4], subject: base, version: 1 }] };
    const id = await client.register(subject, pair);
    const found = await fresh().getBySubjectAndId(subject, id);
    same(found.references, pair.references, "references");
    await refused(client.deleteSubject(base), 422, 42206, "what is referred to");
  }
}

async function config() {
  const subject = `${name}-config`;
  same(await client.updateCompatibility(subject, "FULL"), "FULL", "the level");
  same(await client.getCompatibility(subject), "FULL", "the level kept");
  await client.updateConfig(subject, { compatibility: "NONE", defaultMetadata: { properties: { owner: "Ada" } } });
  const found = await client.getConfig(subject);
  same([found.compatibilityLevel, found.defaultMetadata.properties], ["NONE", { owner: "Ada" }], "its configuration");
  await client.register(subject, schemaOf("AVRO", 0));
  same((await client.getLatestWithMetadata(subject, { owner: "Ada" })).version, 1, "by metadata");
  demand(await client.getDefaultCompatibility(), "the default level");
  await refused(client.getConfig(`${name}-none`), 404, 40401, "no configuration");
}

function userMessage() {
  const field = (name, number, type) => ({ name, number, type, label: 1, jsonName: name });
  const file = create(FileDescriptorProtoSchema, {
    name: "user.proto",
    package: "people",
    syntax: "proto3",
    messageType: [{ name: "Other" }, { name: "User", field: [field("name", 1, 9), field("age", 2, 5)] }],
  });
  return createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getMessage("people.User");
}

async function produce(topic, value, headers = {}) {
  const producer = kafka.producer();
  await producer.connect();
  try {
    await producer.send({ topic, messages: [{ value, headers }] });
  } finally {
    await producer.disconnect();
  }
}

async function consume(topic, count) {
  const consumer = kafka.consumer({ groupId: `${topic}-group` });
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    return await new Promise((done, failed) => {
      const found = [];
      setTimeout(() => failed(new Error(`${found.length} of ${count} came`)), 60_000).unref();
      const eachMessage = async ({ message }) => found.push(message) === count && done(found);
      consumer.run({ eachMessage }).catch(failed);
    });
  } finally {
    await consumer.disconnect();
  }
}

const headersOf = (message) => message.headers;

async function round(suffix, conf) {
  const writer = fresh();
  const message = userMessage();
  const ada = { name: "Ada Lovelace", age: 36 };
  const serdes = {
    avro: [new AvroSerializer(writer, SerdeType.VALUE, conf), new AvroDeserializer(fresh(), SerdeType.VALUE, {}), ada],
    json: [new JsonSerializer(writer, SerdeType.VALUE, conf), new JsonDeserializer(fresh(), SerdeType.VALUE, {}), ada],
    protobuf: [
      new ProtobufSerializer(writer, SerdeType.VALUE, { ...conf, registry: createMutableRegistry(message) }),
      new ProtobufDeserializer(fresh(), SerdeType.VALUE, {}),
      create(message, ada),
    ],
  };
  const given = { avro: schemaOf("AVRO", 0), json: schemaOf("JSON", 0) };
  for (const [format, [serializer, deserializer, value]] of Object.entries(serdes)) {
    const topic = `${name}-${format}${suffix}`;
    if (given[format]) {
      await writer.register(`${topic}-value`, given[format]);
      Object.assign(serializer.conf, { autoRegisterSchemas: false, useLatestVersion: true });
    } else {
      serializer.conf.autoRegisterSchemas = true;
    }
    const headers = {};
    await produce(topic, await serializer.serialize(topic, value, headers), headers);
    const [found] = await consume(topic, 1);
    const read = await deserializer.deserialize(topic, found.value, headersOf(found));
    same([read.name, read.age], ["Ada Lovelace", 36], `${format}${suffix}`);
  }
}

const encode = () => round("", {});
const header = () => round("-header", { schemaIdSerializer: HeaderSchemaIdSerializer });

async function withoutASchema() {
  for (const format of ["avro", "json", "protobuf"]) {
    let error;
    await produce(`${name}-${format}`, '{"name":"Ada"}').catch((found) => (error = found));
    demand(error?.type === "INVALID_RECORD", `${format}: ${error}`);
  }
}

async function deletes() {
  const subject = `${name}-config`;
  await refused(client.deleteSubject(subject, true), 404, 40405, "not deleted yet");
  same(await client.deleteSubjectVersion(subject, 1), 1, "a version");
  same(await client.deleteSubjectVersion(subject, 1, true), 1, "a version, for good");
  const other = `${name}-AVRO-full`;
  same(await client.deleteSubject(other), [1], "a subject");
  demand(!(await client.getAllSubjects()).includes(other), "it is gone");
  same(await client.deleteSubject(other, true), [1], "a subject, for good");
  await refused(fresh().getAllVersions(other), 404, 40401, "what is gone");
}

const duties = {
  register,
  evolve,
  refuse,
  "look up": lookUp,
  references,
  config,
  encode,
  header,
  "without a schema": withoutASchema,
  deletion: deletes,
};

(async () => {
  for (const [duty, run] of Object.entries(duties)) {
    await run();
    console.log(`did ${duty}:`);
  }
  process.exit(0);
})().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
