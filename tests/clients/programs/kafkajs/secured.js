// The duties of tests/support/secured_duties.py, by kafkajs.
const { readFileSync } = require("node:fs");
const { setTimeout: pause } = require("node:timers/promises");
const { Kafka, logLevel } = require("kafkajs");

const [duty, file] = process.argv.slice(3);
const lines = readFileSync(file, "utf8").trim().split("\n");
const given = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
const topic = given["scenario.topic"];
const PATIENCE = 60_000;
let throttled = 0;

function demand(met, what) {
  if (!met) throw new Error(what);
}

function sasl() {
  const mechanism = given["sasl.mechanism"];
  if (!mechanism) return {};
  const token = { oauthBearerProvider: async () => ({ value: given["scenario.token"] }) };
  const pair = { username: given["sasl.username"], password: given["sasl.password"] };
  return { sasl: { mechanism: mechanism.toLowerCase(), ...(mechanism === "OAUTHBEARER" ? token : pair) } };
}

function ssl() {
  const own = given["ssl.certificate.location"];
  const ca = [readFileSync(given["ssl.ca.location"])];
  return own ? { ca, cert: readFileSync(own), key: readFileSync(given["ssl.key.location"]) } : { ca };
}

const kafka = new Kafka({
  brokers: [given["bootstrap.servers"]],
  clientId: given["client.id"],
  ssl: ssl(),
  ...sasl(),
  reauthenticationThreshold: 1000,
  logLevel: logLevel.DEBUG,
  // It says nowhere else for how long it was told to wait.
  logCreator: () => ({ level, log }) => {
    const found = /throttling in effect for (\d+)ms/.exec(log.message);
    if (found) throttled = Math.max(throttled, Number(found[1]));
    if (level <= logLevel.ERROR) console.error(log.message, log.error || "");
  },
});

async function using(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

const rights = async () => {
  await using(kafka.producer(), async (producer) => {
    const messages = Array.from({ length: 200 }, (_, n) => ({ value: String(n) }));
    await producer.send({ topic, messages, acks: -1 });
    const refused = await producer.send({ topic: given["scenario.other"], messages: [{ value: "x" }] }).catch((error) => error);
    const type = refused.type || (refused.cause && refused.cause.type);
    demand(type === "TOPIC_AUTHORIZATION_FAILED", `not refused, but ${refused.message || JSON.stringify(refused)}`);
  });
  await using(kafka.consumer({ groupId: given["scenario.group"] }), async (consumer) => {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    const got = [];
    await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => got.push(String(message.value)) });
    for (const deadline = Date.now() + PATIENCE; got.length < 200; await pause(20)) {
      demand(Date.now() < deadline, `${got.length} of 200 records came`);
    }
    demand(got.every((value, n) => value === String(n)), `other records: ${got}`);
    await consumer.commitOffsets([{ topic, partition: 0, offset: "200" }]);
  });
};

const again = () =>
  using(kafka.producer(), async (producer) => {
    let sent = 0;
    for (const end = Date.now() + 1000 * Number(given["scenario.seconds"]); Date.now() < end; sent++) {
      await producer.send({ topic, messages: [{ value: "x" }], acks: -1 });
      await pause(50);
    }
    return sent;
  });

const quota = () =>
  using(kafka.producer(), async (producer) => {
    for (let n = 0; n < 4; n++) {
      await producer.send({ topic, messages: Array(40).fill({ value: "x".repeat(1000) }), acks: -1 });
    }
    return throttled;
  });

({ rights, again, quota })[duty]().then(
  (told) => console.log(`did ${duty}: ${told ?? ""}`),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
