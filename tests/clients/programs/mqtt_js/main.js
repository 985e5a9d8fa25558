// The duties of tests/support/mqtt_duties.py, by MQTT.js: HOST PORT PREFIX [PORT OF WEBSOCKETS].
const mqtt = require("mqtt");

const [host, port, prefix, webPort] = process.argv.slice(2);
const url = webPort ? `ws://${host}:${webPort}/mqtt` : `mqtt://${host}:${port}`;
const PATIENCE_MS = 60_000;
const numbers = (count) => Array.from({ length: count }, (_, n) => String(n));

function demand(met, ...what) {
  if (!met) throw new Error(what.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" "));
}

function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not in time`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// A connection and all that it was sent; `until(what, met)` waits for the messages to be enough.
async function client(id, options = {}) {
  const connection = mqtt.connect(url, {
    clientId: `${prefix}-${id}`.replaceAll("/", "-"), clean: true, protocolVersion: 5, reconnectPeriod: 0, ...options,
  });
  const got = [];
  const waiting = [];
  connection.on("message", (topic, payload, packet) => {
    got.push({ topic, text: payload.toString(), qos: packet.qos, retain: packet.retain, packet });
    for (const look of [...waiting]) look();
  });
  const connack = await within(`${id} connects`, new Promise((resolve, reject) => {
    connection.once("connect", resolve);
    connection.once("error", reject);
  }));
  connection.on("error", (error) => { throw error; });
  const until = (what, met) => within(what, new Promise((resolve) => {
    const look = () => {
      if (!met(got)) return;
      waiting.splice(waiting.indexOf(look), 1);
      resolve();
    };
    waiting.push(look);
    look();
  })).catch((error) => { throw new Error(`${error.message}; got ${JSON.stringify(got.map((one) => one.text))}`); });
  return {
    connection, connack, got, until,
    subscribe: (filter, qos) => connection.subscribeAsync(filter, { qos }),
    publish: (topic, text, options) => within(`publishing ${text}`, connection.publishAsync(topic, text, options)),
    end: () => within(`${id} ends`, connection.endAsync()),
    cut: () => { connection.stream.destroy(); return within(`${id} is cut`, connection.endAsync(true)); },
  };
}

async function connect() {
  for (const protocolVersion of [4, 5]) {
    const one = await client("connect", { protocolVersion, keepalive: 10 });
    demand(!one.connack.sessionPresent, "a session that was never made");
    await one.end();
  }
  const unnamed = await client("unused", { clientId: "" });
  demand(unnamed.connack.properties.assignedClientIdentifier, "no client id was assigned");
  await unnamed.end();
}

async function quality(qos) {
  const [listener, sender] = [await client("listener"), await client("sender")];
  await listener.subscribe(`${prefix}/qos/+`, qos);
  await Promise.all(numbers(30).map((text) => sender.publish(`${prefix}/qos/${qos}`, text, { qos })));
  await listener.until(`QoS ${qos}`, (got) => got.length >= 30);
  demand(listener.got.map((one) => one.text).join() === numbers(30).join(), listener.got.map((one) => one.text));
  demand(listener.got.every((one) => one.qos === qos && !one.retain), "a flag is wrong");
  await Promise.all([listener.end(), sender.end()]);
}

async function retained() {
  const sender = await client("sender");
  for (const text of ["first", "last"]) await sender.publish(`${prefix}/retained`, text, { qos: 1, retain: true });
  const late = await client("late");
  await late.subscribe(`${prefix}/retained`, 1);
  await late.until("the retained message", (got) => got.length === 1);
  demand(late.got[0].text === "last" && late.got[0].retain, late.got);
  await sender.publish(`${prefix}/retained`, "", { qos: 1, retain: true });
  const later = await client("later");
  await later.subscribe(`${prefix}/retained`, 1);
  await sender.publish(`${prefix}/retained`, "live", { qos: 1 });
  await later.until("a live message", (got) => got.length === 1);
  demand(later.got[0].text === "live" && !later.got[0].retain, later.got);
  await Promise.all([sender.end(), late.end(), later.end()]);
}

async function will() {
  const witness = await client("witness");
  await witness.subscribe(`${prefix}/will`, 1);
  const mine = (payload) => ({ will: { topic: `${prefix}/will`, payload: Buffer.from(payload), qos: 1, retain: false } });
  await (await client("polite", mine("polite"))).end();
  await (await client("broken", mine("broken"))).cut();
  await witness.until("the will", (got) => got.length === 1);
  demand(witness.got[0].text === "broken", witness.got);
  await witness.end();
}

async function resume() {
  const lasting = { clean: false, properties: { sessionExpiryInterval: 300 } };
  const first = await client("lasting", lasting);
  demand(!first.connack.sessionPresent, "a session before the first one");
  await first.subscribe(`${prefix}/resumed`, 2);
  await first.end();
  const sender = await client("sender");
  const sent = [];
  for (const qos of [1, 2]) {
    for (const text of numbers(10)) {
      sent.push(`${qos}-${text}`);
      await sender.publish(`${prefix}/resumed`, `${qos}-${text}`, { qos });
    }
  }
  const again = await client("lasting", lasting);
  demand(again.connack.sessionPresent, "the session is gone");
  await again.until("what came meanwhile", (got) => got.length >= sent.length);
  demand(again.got.map((one) => one.text).join() === sent.join(), again.got.map((one) => one.text));
  await again.end();
  const clean = await client("lasting");
  demand(!clean.connack.sessionPresent, "a clean start has kept the session");
  await Promise.all([sender.end(), clean.end()]);
}

async function shared() {
  const members = [await client("member-1"), await client("member-2")];
  const all = () => members.flatMap((one) => one.got.map((message) => message.text));
  for (const one of members) await one.subscribe(`$share/${prefix.replaceAll("/", "-")}/${prefix}/shared`, 1);
  const sender = await client("sender");
  await Promise.all(numbers(60).map((text) => sender.publish(`${prefix}/shared`, text, { qos: 1 })));
  await Promise.race(members.map((one) => one.until("the shared messages", () => all().length >= 60)));
  demand(all().map(Number).sort((a, b) => a - b).join() === numbers(60).join(), all());
  demand(members.every((one) => one.got.length > 0), "one member got nothing");
  await Promise.all([sender, ...members].map((one) => one.end()));
}

async function properties() {
  const [listener, sender] = [await client("listener"), await client("sender")];
  await listener.subscribe(`${prefix}/properties`, 1);
  await sender.publish(`${prefix}/properties`, "{}", { qos: 1, properties: {
    contentType: "application/json", responseTopic: `${prefix}/answers`, correlationData: Buffer.from([0, 1, 255]),
    userProperties: { unit: ["celsius", "kelvin"] }, messageExpiryInterval: 300, payloadFormatIndicator: true,
  } });
  await listener.until("the message with properties", (got) => got.length === 1);
  const found = listener.got[0].packet.properties;
  demand(found.contentType === "application/json" && found.responseTopic === `${prefix}/answers`, found);
  demand(Buffer.from([0, 1, 255]).equals(found.correlationData) && found.payloadFormatIndicator, found);
  demand(found.userProperties.unit.join() === "celsius,kelvin", found);
  demand(found.messageExpiryInterval > 200 && found.messageExpiryInterval <= 300, found);
  await Promise.all([listener.end(), sender.end()]);
}

async function main() {
  const duties = [
    ["connect", connect], ...[0, 1, 2].map((qos) => [`QoS ${qos}`, () => quality(qos)]), ["retained", retained],
    ["will", will], ["session resume", resume], ["shared subscription", shared], ["properties", properties],
  ];
  for (const [name, run] of duties) {
    await run();
    console.log(`did ${name}:`);
  }
  process.exit(0);
}

process.on("unhandledRejection", (error) => { console.error(error); process.exit(1); });
process.on("uncaughtException", (error) => { console.error(error); process.exit(1); });
main();
