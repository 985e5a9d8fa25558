// The duties of tests/support/client_duties.py, by node-rdkafka: librdkafka in Node.
const { promisify } = require("node:util");
const kafka = require("node-rdkafka");

const PATIENCE = 60_000;
const [bootstrap, name] = process.argv.slice(2);
const start = Date.now() - 3_600_000;
const at = { "metadata.broker.list": bootstrap };
const codecs = ["none", ...["gzip", "snappy", "lz4", "zstd"].filter((one) => kafka.features.includes(one))];

function demand(met, what) {
  if (!met) throw new Error(what);
}

async function until(what, met) {
  for (const deadline = Date.now() + PATIENCE; !met(); ) {
    demand(Date.now() < deadline, `${what}: not in time`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

// A method that takes a callback, as a promise.
const ask = (thing, method, ...words) => promisify(thing[method].bind(thing))(...words);

async function using(client, work) {
  await ask(client, "connect", {});
  try {
    return await work(client);
  } finally {
    await ask(client, "disconnect");
  }
}

async function administer(work) {
  const admin = kafka.AdminClient.create(at);
  try {
    return await work(admin);
  } finally {
    admin.disconnect();
  }
}

function producer(settings = {}) {
  const found = new kafka.Producer({ ...at, "enable.idempotence": true, dr_cb: true, ...settings });
  found.setPollInterval(10);
  found.failures = [];
  found.on("delivery-report", (error) => error && found.failures.push(error));
  return found;
}

async function flush(from) {
  await ask(from, "flush", PATIENCE);
  demand(from.failures.length === 0, `not delivered: ${from.failures[0]}`);
}

const consumer = (group, settings = {}) =>
  new kafka.KafkaConsumer(
    { ...at, "group.id": group, "enable.auto.commit": false, ...settings },
    { "auto.offset.reset": "earliest" },
  );

const topics = async () => {
  const client = producer();
  return using(client, async () => (await ask(client, "getMetadata", { timeout: PATIENCE })).topics);
};

const create = () =>
  administer(async (admin) => {
    const config = { "retention.ms": "86400000", "segment.bytes": "16777216" };
    for (const [topic, num_partitions, settings] of [[name, 3, config], [`${name}-group`, 4, {}], [`${name}-tx`, 1, {}]]) {
      await ask(admin, "createTopic", { topic, num_partitions, replication_factor: 1, config: settings }, PATIENCE);
    }
    const found = (await topics()).find((one) => one.name === name);
    demand(found.partitions.length === 3, `${found.partitions.length} partitions`);
  });

const value = (codec, n) => (n === 89 ? null : Buffer.from(`${codec} ${n} ${"x".repeat(200)}`));

async function produce() {
  for (const [batch, codec] of codecs.entries()) {
    await using(producer({ "compression.type": codec }), async (to) => {
      for (let n = 0; n < 90; n++) {
        const headers = [{ codec }, { n: String(n) }];
        to.produce(name, n % 3, value(codec, n), `${codec}-${n}`, start + (90 * batch + n) * 1000, null, headers);
      }
      await flush(to);
    });
  }
  return codecs.join(" ");
}

// The next `count` records of one partition from an offset on.
const take = (topic, partition, offset, count, settings) =>
  using(consumer("none", settings), async (from) => {
    from.assign([{ topic, partition, offset }]);
    const got = [];
    from.setDefaultConsumeTimeout(200);
    for (const deadline = Date.now() + PATIENCE; got.length < count; ) {
      demand(Date.now() < deadline, `${got.length} of ${count} records of ${topic}-${partition} came`);
      got.push(...(await ask(from, "consume", count - got.length)));
    }
    return got;
  });

async function read() {
  for (const partition of [0, 1, 2]) {
    for (const [position, message] of (await take(name, partition, 0, 30 * codecs.length)).entries()) {
      const batch = Math.floor(position / 30);
      const codec = codecs[batch];
      const n = (position % 30) * 3 + partition;
      const [first, second] = message.headers.map((header) => Object.entries(header)[0].map(String));
      demand(message.key.toString() === `${codec}-${n}`, `key ${message.key}`);
      demand(String(message.value) === String(value(codec, n)), `value ${message.value}`);
      demand(first.join() === `codec,${codec}` && second.join() === `n,${n}`, `headers ${first} ${second}`);
      demand(message.timestamp === start + (90 * batch + n) * 1000, `time ${message.timestamp}`);
    }
  }
}

// One member of the group, and what it has seen.
async function join() {
  const from = consumer(`${name}-g`, { "session.timeout.ms": 10_000, "heartbeat.interval.ms": 500 });
  const member = { seen: [], holds: () => from.assignments().length, leave: () => ask(from, "disconnect") };
  await ask(from, "connect", {});
  from.on("data", (message) => {
    member.seen.push(Number(message.value));
    from.commitMessageSync(message);
  });
  from.subscribe([`${name}-group`]);
  from.consume();
  return member;
}

const sendNumbers = (first, end) =>
  using(producer(), async (to) => {
    for (let n = first; n < end; n++) to.produce(`${name}-group`, n % 4, Buffer.from(String(n)));
    await flush(to);
  });

async function rebalance() {
  const [first, second] = await Promise.all([join(), join()]);
  await until("two partitions each", () => first.holds() === 2 && second.holds() === 2);
  await sendNumbers(0, 200);
  await until("100 records each", () => first.seen.length === 100 && second.seen.length === 100);
  await second.leave();
  await until("all partitions for the one that stays", () => first.holds() === 4);
  await sendNumbers(200, 400);
  await until("the records of all partitions", () => first.seen.length >= 300);
  await first.leave();
  const all = [...first.seen, ...second.seen];
  demand(all.length === 400 && new Set(all).size === 400, `${all.length} records, ${new Set(all).size} different ones`);
}

async function commit() {
  const partitions = [0, 1, 2, 3].map((partition) => ({ topic: `${name}-group`, partition }));
  for (const { partition, offset } of await using(consumer(`${name}-g`), (from) => ask(from, "committed", partitions, PATIENCE))) {
    demand(offset === 100, `${offset} is committed for partition ${partition}`);
  }
  await sendNumbers(400, 408);
  const third = await join();
  await until("what came after the commit", () => third.seen.length === 8);
  demand(Math.min(...third.seen) === 400, `${third.seen} were committed before`);
  await third.leave();
}

async function seek() {
  const where = (time) =>
    using(consumer("none"), async (client) => {
      const [found] = await ask(client, "offsetsForTimes", [{ topic: name, partition: 1, offset: time }], PATIENCE);
      return found.offset;
    });
  const offset = await where(start + 30_500);
  demand(offset === 10, `offset ${offset}`);
  const [found] = await take(name, 1, offset, 1);
  demand(found.key.toString() === "none-31", `key ${found.key}`);
  const later = await where(start + 7_200_000);
  demand(later === -1, `offset ${later} for a time to come`); // librdkafka: OFFSET_END
}

async function transactions() {
  await using(producer({ "transactional.id": `${name}-id` }), async (to) => {
    await ask(to, "initTransactions", PATIENCE);
    for (const letter of "abc") {
      await ask(to, "beginTransaction");
      for (let n = 0; n < 10; n++) to.produce(`${name}-tx`, 0, Buffer.from(letter));
      await flush(to);
      await ask(to, letter === "b" ? "abortTransaction" : "commitTransaction", PATIENCE);
    }
  });
  for (const [level, count] of [["read_committed", 20], ["read_uncommitted", 30]]) {
    const got = await take(`${name}-tx`, 0, 0, count, { "isolation.level": level });
    const letters = got.map((message) => message.value.toString()).join("");
    demand(letters === "a".repeat(10) + "b".repeat(count - 20) + "c".repeat(10), `records ${letters}`);
  }
}

const remove = () =>
  administer(async (admin) => {
    await ask(admin, "deleteTopic", `${name}-group`, PATIENCE);
    demand(!(await topics()).some((one) => one.name === `${name}-group`), "the topic is still listed");
    return "topics";
  });

const DUTIES = { create, produce, read, rebalance, commit, "seek by time": seek, "read committed": transactions, delete: remove };

async function main() {
  for (const [duty, work] of Object.entries(DUTIES)) console.log(`did ${duty}: ${(await work()) || ""}`);
}

if (bootstrap === "secured") {
  require("./secured.js");
} else {
  main().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}
