// Sends records, reads them back by a group, then asks what administrators ask.
const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

async function main() {
  const [bootstrap, topic] = process.argv.slice(2);
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }], waitForLeaders: true });

  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  const wanted = new Set();
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = [];
    for (let at = 0; at < 200; at++) {
      const value = `${compression}-${at}`;
      wanted.add(value);
      messages.push({ key: `k${at}`, value, headers: { h: "1" } });
    }
    await producer.send({ topic, compression, messages, acks: -1 });
  }
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: topic });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise((done, failed) => {
    consumer
      .run({
        eachMessage: async ({ message }) => {
          const value = message.value.toString();
          if (!wanted.delete(value) || message.headers.h.toString() !== "1") failed(new Error(`not sent, or here twice: ${value}`));
          if (wanted.size === 0) done();
        },
      })
      .catch(failed);
  });
  await consumer.disconnect();

  const ends = await admin.fetchTopicOffsets(topic);
  const sum = ends.reduce((total, one) => total + Number(one.offset), 0);
  if (sum !== 400) throw new Error(`${sum} records in the topic`);
  const groups = (await admin.listGroups()).groups.map((one) => one.groupId);
  if (!groups.includes(topic)) throw new Error("the group is not listed");
  await admin.fetchOffsets({ groupId: topic, topics: [topic] });
  await admin.fetchTopicMetadata({ topics: [topic] });
  await admin.describeCluster();
  await admin.deleteGroups([topic]);
  await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
