// The duties of tests/support/client_duties.py, by kafkajs.
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");

const PATIENCE = 60_000;
const [bootstrap, name] = process.argv.slice(2);
const start = Date.now() - 3_600_000;
const kafka = new Kafka({ brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };

function demand(met, what) {
  if (!met) throw new Error(what);
}

async function until(what, met) {
  for (const deadline = Date.now() + PATIENCE; !met(); ) {
    demand(Date.now() < deadline, `${what}: not in time`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function using(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

const create = () =>
  using(kafka.admin(), async (admin) => {
    const configEntries = [
      { name: "retention.ms", value: "86400000" },
      { name: "segment.bytes", value: "16777216" },
    ];
    const topics = [
      { topic: name, numPartitions: 3, configEntries },
      { topic: `${name}-group`, numPartitions: 4 },
      { topic: `${name}-tx`, numPartitions: 1 },
    ];
    await admin.createTopics({ topics, waitForLeaders: true });
    const found = (await admin.fetchTopicMetadata({ topics: [name] })).topics[0].partitions;
    demand(found.length === 3, `${found.length} partitions`);
  });

const value = (codec, n) => (n === 89 ? null : `${codec} ${n} ${"x".repeat(200)}`);

const produce = () =>
  using(kafka.producer({ idempotent: true }), async (producer) => {
    for (const [at, codec] of Object.keys(codecs).entries()) {
      const messages = [];
      for (let n = 0; n < 90; n++) {
        messages.push({
          partition: n % 3,
          key: `${codec}-${n}`,
          value: value(codec, n),
          headers: { codec, n: String(n) },
          timestamp: String(start + (90 * at + n) * 1000),
        });
      }
      await producer.send({ topic: name, compression: codecs[codec], messages, acks: -1 });
    }
    return Object.keys(codecs).join(" ");
  });

// The first `count` records of a topic, by partition; from `offset` on of one partition where that is given.
async function take(topic, count, groupId, { from, ...how } = {}) {
  const got = [];
  await using(kafka.consumer({ groupId, ...how }), async (consumer) => {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({ autoCommit: false, eachMessage: async (message) => void got.push(message) });
    if (from) {
      for (const partition of [0, 1, 2]) {
        if (partition !== from.partition) consumer.pause([{ topic, partitions: [partition] }]);
      }
      consumer.seek({ topic, ...from });
    }
    const sought = () => (from ? got.filter((one) => one.partition === from.partition && +one.message.offset >= +from.offset) : got);
    await until(`${count} records of ${topic}`, () => sought().length >= count);
  });
  return got;
}

async function read() {
  const names = Object.keys(codecs);
  const got = await take(name, 90 * names.length, `${name}-r`);
  for (const partition of [0, 1, 2]) {
    const mine = got.filter((one) => one.partition === partition);
    demand(mine.length === 30 * names.length, `${mine.length} records`);
    for (const [at, { message }] of mine.entries()) {
      const batch = Math.floor(at / 30);
      const codec = names[batch];
      const n = (at % 30) * 3 + partition;
      demand(message.key.toString() === `${codec}-${n}`, `key ${message.key}`);
      demand((message.value && message.value.toString()) === value(codec, n), `value ${message.value}`);
      demand(message.headers.codec.toString() === codec && message.headers.n.toString() === String(n), "headers");
      demand(Number(message.timestamp) === start + (90 * batch + n) * 1000, `time ${message.timestamp}`);
    }
  }
}

// One member of the group, and what it holds and has seen.
async function join() {
  const consumer = kafka.consumer({ groupId: `${name}-g`, rebalanceTimeout: 10_000, heartbeatInterval: 500 });
  const member = { holds: 0, seen: [] };
  const topic = `${name}-group`;
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.holds = (payload.memberAssignment[topic] || []).length;
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      member.seen.push(Number(message.value));
      await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }]);
    },
  });
  member.leave = () => consumer.disconnect();
  return member;
}

const sendNumbers = (from, to) =>
  using(kafka.producer(), async (producer) => {
    const messages = [];
    for (let n = from; n < to; n++) messages.push({ partition: n % 4, value: String(n) });
    await producer.send({ topic: `${name}-group`, messages, acks: -1 });
  });

async function rebalance() {
  const [first, second] = await Promise.all([join(), join()]);
  await until("two partitions each", () => first.holds === 2 && second.holds === 2);
  await sendNumbers(0, 200);
  await until("100 records each", () => first.seen.length === 100 && second.seen.length === 100);
  await second.leave();
  await until("all partitions for the one that stays", () => first.holds === 4);
  await sendNumbers(200, 400);
  await until("the records of all partitions", () => first.seen.length >= 300);
  await first.leave();
  const all = [...first.seen, ...second.seen];
  demand(all.length === 400 && new Set(all).size === 400, `${all.length} records, ${new Set(all).size} different ones`);
}

async function commit() {
  await using(kafka.admin(), async (admin) => {
    const [told] = await admin.fetchOffsets({ groupId: `${name}-g`, topics: [`${name}-group`] });
    for (const { partition, offset } of told.partitions) demand(offset === "100", `${offset} is committed for partition ${partition}`);
  });
  await sendNumbers(400, 408);
  const third = await join();
  await until("what came after the commit", () => third.seen.length === 8);
  demand(Math.min(...third.seen) === 400, `${third.seen} were committed before`);
  await third.leave();
}

async function seek() {
  const offset = await using(kafka.admin(), async (admin) => {
    const later = await admin.fetchTopicOffsetsByTimestamp(name, start + 7_200_000);
    const end = String(30 * Object.keys(codecs).length); // it then asks for the end
    demand(later.every((one) => one.offset === end), `${JSON.stringify(later)} for a time to come`);
    return (await admin.fetchTopicOffsetsByTimestamp(name, start + 30_500)).find((one) => one.partition === 1).offset;
  });
  demand(offset === "10", `offset ${offset}`);
  const got = await take(name, 1, `${name}-s`, { from: { partition: 1, offset } });
  const found = got.find((one) => one.partition === 1 && one.message.offset === offset);
  demand(found && found.message.key.toString() === "none-31", "another record than the one sought");
}

async function transactions() {
  const settings = { transactionalId: `${name}-id`, idempotent: true, maxInFlightRequests: 1 };
  await using(kafka.producer(settings), async (producer) => {
    for (const letter of "abc") {
      const transaction = await producer.transaction();
      await transaction.send({ topic: `${name}-tx`, messages: Array(10).fill({ value: letter }) });
      await (letter === "b" ? transaction.abort() : transaction.commit());
    }
  });
  for (const [readUncommitted, count] of [[false, 20], [true, 30]]) {
    const got = await take(`${name}-tx`, count, `${name}-t${count}`, { readUncommitted });
    const letters = got.map(({ message }) => message.value.toString()).join("");
    demand(letters === "a".repeat(10) + "b".repeat(count - 20) + "c".repeat(10), `records ${letters}`);
  }
}

const alter = () =>
  using(kafka.admin(), async (admin) => {
    const resource = { type: ConfigResourceTypes.TOPIC, name };
    // It knows only the older request, which takes back whatever it does not name.
    const configEntries = [
      { name: "retention.ms", value: "172800000" },
      { name: "segment.bytes", value: "16777216" },
    ];
    await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] });
    const found = (await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })).resources[0].configEntries;
    const told = Object.fromEntries(found.map((entry) => [entry.configName, entry.configValue]));
    demand(told["retention.ms"] === "172800000" && told["segment.bytes"] === "16777216", JSON.stringify(told));
  });

const remove = () =>
  using(kafka.admin(), async (admin) => {
    await admin.deleteGroups([`${name}-g`, `${name}-r`, `${name}-s`, `${name}-t20`, `${name}-t30`]);
    await admin.deleteTopics({ topics: [`${name}-group`] });
    const groups = (await admin.listGroups()).groups.map((one) => one.groupId);
    demand(!groups.includes(`${name}-g`), "the group is still listed");
    demand(!(await admin.listTopics()).includes(`${name}-group`), "the topic is still listed");
    return "topics groups";
  });

const DUTIES = { create, produce, read, rebalance, commit, "seek by time": seek, "read committed": transactions, alter, delete: remove };

async function main() {
  for (const [duty, work] of Object.entries(DUTIES)) console.log(`did ${duty}: ${(await work()) || ""}`);
}

if (bootstrap === "secured") {
  require("./secured.js");
} else {
  main().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}
