// Starts one stand-in on a loopback port that the kernel chooses, prints its
// URL as the first line of stdout, and serves until stdin ends. So it never
// outlives the process that started it, however that one ends.
//
//   node standin.mjs dynamodb|sqs

import process from "node:process";

const host = "127.0.0.1";

const standins = {
  async dynamodb() {
    const { default: dynalite } = await import("dynalite");
    const server = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 });
    server.keepAliveTimeout = 0; // clients end their idle connections themselves
    await new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, host, resolve);
    });
    return `http://${host}:${server.address().port}`;
  },
  async sqs() {
    const { buildApp } = await import("fauxqs");
    const app = buildApp({ logger: false });
    app.server.keepAliveTimeout = 0;
    return app.listen({ host, port: 0 });
  },
};

const start = standins[process.argv[2]];
if (!start) {
  console.error(`standin: ${process.argv[2]} is none of ${Object.keys(standins).join(", ")}`);
  process.exit(2);
}
// dynalite lets a request that its client has cut off end the process.
process.on("uncaughtException", (e) => {
  if (e.code !== "ECONNRESET" && e.code !== "EPIPE") {
    console.error(e);
    process.exit(1);
  }
});
process.stdin.on("end", () => process.exit(0)).on("error", () => process.exit(0)).resume();
console.log(await start());
