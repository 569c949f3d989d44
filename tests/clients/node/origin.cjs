// An origin that writes a line for each request: its case, method, target and the hash of its body.
const { createHash } = require("node:crypto");
const server = require("node:http").createServer((request, response) => {
  const hash = createHash("sha256");
  request.on("data", (piece) => hash.update(piece));
  request.on("end", () => {
    const line = [request.headers["x-case"] ?? null, request.method, request.url, hash.digest("hex")];
    process.stdout.write(JSON.stringify(line) + "\n");
    response.writeHead(200, { "content-type": "application/json", "content-length": 2 });
    response.end("{}");
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
