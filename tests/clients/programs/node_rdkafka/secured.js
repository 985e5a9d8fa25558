// The duties of tests/support/secured_duties.py, by node-rdkafka.
const { readFileSync } = require("node:fs");
const { setTimeout: pause } = require("node:timers/promises");
const { promisify } = require("node:util");
const kafka = require("node-rdkafka");

const [duty, file] = process.argv.slice(3);
const lines = readFileSync(file, "utf8").trim().split("\n");
const given = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
const topic = given["scenario.topic"];
const settings = Object.fromEntries(Object.entries(given).filter(([name]) => !name.startsWith("scenario.")));
const PATIENCE = 60_000;
// A report of delivery has no code of the error, only its words.
const REFUSED = /topic authorization failed$/i;

function demand(met, what) {
  if (!met) throw new Error(what);
}

// A method that takes a callback, as a promise.
const ask = (thing, method, ...words) => promisify(thing[method].bind(thing))(...words);

async function using(client, work) {
  if (given["sasl.mechanism"] === "OAUTHBEARER") client.setOauthBearerToken(given["scenario.token"]);
  await ask(client, "connect", {});
  try {
    return await work(client);
  } finally {
    await ask(client, "disconnect");
  }
}

function producer() {
  const found = new kafka.Producer({ ...settings, dr_cb: true });
  found.setPollInterval(10);
  found.throttled = 0;
  found.on("event.throttle", ({ throttleTime }) => {
    found.throttled = Math.max(found.throttled, throttleTime);
  });
  // The words of the errors with which these values are answered, null for none.
  found.write = (to, values) =>
    new Promise((done, failed) => {
      const told = [];
      const late = setTimeout(() => failed(new Error(`${told.length} of ${values.length} records are answered`)), PATIENCE);
      const answered = (error) => {
        told.push(error ? error.message : null);
        if (told.length < values.length) return;
        clearTimeout(late);
        found.off("delivery-report", answered);
        done(told);
      };
      found.on("delivery-report", answered);
      for (const value of values) {
        try {
          found.produce(to, null, Buffer.from(value));
        } catch (error) {
          answered(error); // where it knows already
        }
      }
    });
  return found;
}

async function write(to, values) {
  const told = await to.write(topic, values);
  demand(told.every((error) => error === null), `not delivered: ${told}`);
}

async function rights() {
  const values = Array.from({ length: 200 }, (_, n) => String(n));
  await using(producer(), async (to) => {
    await write(to, values);
    const refused = await to.write(given["scenario.other"], ["x"]);
    demand(REFUSED.test(refused[0]), `not refused, but ${refused}`);
  });
  const group = { "group.id": given["scenario.group"], "enable.auto.commit": false };
  await using(new kafka.KafkaConsumer({ ...settings, ...group }, { "auto.offset.reset": "earliest" }), async (from) => {
    const got = [];
    from.setDefaultConsumeTimeout(200);
    from.subscribe([topic]);
    for (const deadline = Date.now() + PATIENCE; got.length < 200; ) {
      demand(Date.now() < deadline, `${got.length} of 200 records came`);
      got.push(...(await ask(from, "consume", 200 - got.length)));
    }
    demand(got.every(({ value }, n) => String(value) === values[n]), "other records");
    from.commitSync();
  });
}

const again = () =>
  using(producer(), async (to) => {
    let sent = 0;
    for (const end = Date.now() + 1000 * Number(given["scenario.seconds"]); Date.now() < end; sent++) {
      await write(to, ["x"]);
      await pause(50);
    }
    return sent;
  });

const quota = () =>
  using(producer(), async (to) => {
    for (let n = 0; n < 4; n++) await write(to, Array(40).fill("x".repeat(1000)));
    return to.throttled;
  });

({ rights, again, quota })[duty]().then(
  (told) => {
    console.log(`did ${duty}: ${told ?? ""}`);
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
