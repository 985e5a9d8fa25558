// Reads a stream of the HTTP proxy until it has COUNT records, and prints their values:
//   main.js sse URL COUNT          by the EventSource of npm's eventsource
//   main.js websocket URL COUNT    by npm's ws, which grants a credit for each record
const EventSource = require("eventsource");
const WebSocket = require("ws");

const [kind, url, count] = process.argv.slice(2);
const seen = [];

function take(value) {
  seen.push(value);
  if (seen.length === Number(count)) {
    console.log(JSON.stringify(seen));
    process.exit(0);
  }
}

if (kind === "sse") {
  new EventSource(url).onmessage = (event) => take(JSON.parse(event.data).value);
} else {
  const socket = new WebSocket(url);
  socket.on("message", (data) => {
    const message = JSON.parse(data);
    if (message.type !== "records") return;
    for (const record of message.records) take(record.value);
    socket.send(JSON.stringify({ credits: message.records.length }));
  });
  socket.on("close", (code) => { console.error(`closed: ${code}`); process.exit(1); });
}
