// Calls AWS's SDK for JavaScript. Each line of its input is {"command": …, "input": …}; it answers with a line of JSON:
// what the call returned, its bodies as text and its stream in parts, or the error that it threw.
const readline = require('node:readline')
const sdk = require('@aws-sdk/client-sagemaker-runtime')

const client = new sdk.SageMakerRuntimeClient({ maxAttempts: 1 })
let headers
client.middlewareStack.add((next) => async (call) => {
  const result = await next(call)
  headers = result.response.headers
  return result
}, { step: 'deserialize', priority: 'low' })

const text = (bytes) => Buffer.from(bytes).toString('utf8')

async function call ({ command, input }) {
  const parts = []
  try {
    const { $metadata, Body, ...members } = await client.send(new sdk[command](input))
    const answer = { ...members, status: $metadata.httpStatusCode, instance: headers['x-isotherm-instance'] }
    if (Body?.[Symbol.asyncIterator]) {
      for await (const event of Body) parts.push(text(event.PayloadPart.Bytes))
    } else if (Body) {
      answer.body = text(Body)
    }
    return { ...answer, parts }
  } catch (error) {
    const { $metadata, $response, $fault, ...members } = error
    return { parts, error: { ...members, name: error.name, message: error.message, status: $metadata?.httpStatusCode } }
  }
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await call(JSON.parse(line))))
  }
}

main()
