// The duties of tests/support/registry_duties.py that kafkajs's client of a registry has, with kafkajs.
const { COMPATIBILITY, SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");
const { Kafka, logLevel } = require("kafkajs");

const [host, bootstrap, name] = process.argv.slice(2);
const fresh = () => new SchemaRegistry({ host, retry: { retries: 0 } });
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 2 } });
const client = fresh();

const record = (...fields) => JSON.stringify({ type: "record", name: "User", namespace: "people", fields });
const text = { name: "name", type: "string" };
const age = { name: "age", type: "int", default: 0 };
// It finds a schema that is referred to by its $id.
const object = (properties, $id = "user.json") =>
  JSON.stringify({ $id, title: "User", type: "object", properties, additionalProperties: false });
const proto = (type, more = "") =>
  `syntax = "proto3";\npackage people;\n\nmessage User {\n  ${type} name = 1;\n  int32 age = 2;\n${more}}\n`;
const formats = {
  AVRO: [
    record(text, age),
    record(text, age, { name: "mail", type: "string", default: "" }),
    record({ name: "name", type: "int" }),
    record({ name: "user", type: "people.User" }).replace('"User"', '"Pair"'),
    "people.User",
  ],
  JSON: [
    object({ name: { type: "string" }, age: { type: "integer" } }),
    object({ name: { type: "string" }, age: { type: "integer" }, mail: { type: "string" } }),
    object({ name: { type: "integer" }, age: { type: "integer" } }),
    object({ user: { $ref: "user.json" } }, "pair.json"),
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
const ada = { name: "Ada Lovelace", age: 36 };
const ids = {};

function demand(met, what) {
  if (!met) throw new Error(what);
}

function same(found, wanted, what) {
  const [a, b] = [found, wanted].map((each) => JSON.stringify(each));
  demand(a === b, `${what}: ${a} is not ${b}`);
}

async function refused(promise, status, what) {
  let error;
  await promise.catch((found) => (error = found));
  demand(error, `${what}: not refused`);
  same(error.status, status, `${what}: ${error}`);
}

const schemaOf = (type, at) => ({ type: SchemaType[type], schema: formats[type][at] });
// It sets the level of a subject that is new, where it is not told otherwise.
const options = (subject) => ({ subject, compatibility: COMPATIBILITY.BACKWARD });

async function register() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    const { id } = await client.register(schemaOf(type, 0), options(subject));
    same((await fresh().register(schemaOf(type, 0), options(subject))).id, id, "the id of the same one");
    same((await fresh().register(schemaOf(type, 0), options(`${subject}-full`))).id, id, "one id in all subjects");
    ids[type] = id;
  }
}

async function evolve() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    const { id } = await client.register(schemaOf(type, 1), options(subject));
    same(await client.getLatestSchemaId(subject), id, "the latest");
  }
}

async function refuse() {
  for (const type of types) {
    await refused(client.register(schemaOf(type, 2), options(`${name}-${type}`)), 409, type);
  }
  // Another level than the subject has is refused by the client itself.
  const other = { subject: `${name}-AVRO`, compatibility: COMPATIBILITY.FULL };
  let error;
  await client.register(schemaOf("AVRO", 0), other).catch((found) => (error = found));
  demand(error && /does not match the configuration/.test(error.message), `the level: ${error}`);
}

async function lookUp() {
  for (const type of types) {
    const subject = `${name}-${type}`;
    same(await fresh().getRegistryId(subject, 1), ids[type], "by version");
    same(await fresh().getRegistryIdBySchema(subject, schemaOf(type, 0)), ids[type], "by schema");
    demand(await fresh().getSchema(ids[type]), "by id");
  }
  await refused(client.getLatestSchemaId(`${name}-none`), 404, "no subject");
  await refused(client.getSchema(2000000), 404, "no schema");
}

async function references() {
  for (const type of types) {
    const [subject, base] = [`${name}-${type}-pair`, `${name}-${type}`];
    const pair = { ...schemaOf(type, 3), references: [{ name: formats[type][4], subject: base, version: 1 }] };
    const { id } = await fresh().register(pair, options(subject));
    const data = await fresh().encode(id, { user: ada });
    const found = await fresh().decode(data);
    same([found.user.name, found.user.age], ["Ada Lovelace", 36], `${type} with a reference`);
  }
}

async function produce(topic, value) {
  const producer = kafka.producer();
  await producer.connect();
  try {
    await producer.send({ topic, messages: [{ value }] });
  } finally {
    await producer.disconnect();
  }
}

async function invalid(topic, value) {
  let error;
  await produce(topic, value).catch((found) => (error = found));
  demand(error?.type === "INVALID_RECORD", `${topic}: ${error}`);
}

async function consume(topic) {
  const consumer = kafka.consumer({ groupId: `${topic}-group` });
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    return await new Promise((done, failed) => {
      setTimeout(() => failed(new Error("nothing came")), 60_000).unref();
      consumer.run({ eachMessage: async ({ message }) => done(message) }).catch(failed);
    });
  } finally {
    await consumer.disconnect();
  }
}

async function encode() {
  for (const type of types) {
    const topic = `${name}-${type.toLowerCase()}`;
    const { id } = await client.register(schemaOf(type, 0), options(`${topic}-value`));
    const data = await client.encode(id, ada);
    if (type === "PROTOBUF") {
      // It leaves out the index of the message, without which no other client reads it.
      await invalid(topic, data);
      same((await fresh().decode(data)).name, ada.name, "what only itself reads");
      continue;
    }
    await produce(topic, data);
    const found = await fresh().decode((await consume(topic)).value);
    same([found.name, found.age], ["Ada Lovelace", 36], type);
  }
}

async function withoutASchema() {
  for (const type of types) await invalid(`${name}-${type.toLowerCase()}`, '{"name":"Ada"}');
}

const duties = {
  register,
  evolve,
  refuse,
  "look up": lookUp,
  references,
  encode,
  "without a schema": withoutASchema,
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
