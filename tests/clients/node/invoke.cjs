// Calls an endpoint with AWS's SDK for JavaScript, and prints what came as JSON. Usage: node invoke.cjs ENDPOINT
const sdk = require('@aws-sdk/client-sagemaker-runtime')

async function main (EndpointName) {
  const client = new sdk.SageMakerRuntimeClient({ maxAttempts: 1 })
  const ContentType = 'application/json'
  const text = (bytes) => Buffer.from(bytes).toString('utf8')

  const native = JSON.stringify({ inputs: 'Hello', parameters: { max_new_tokens: 4 } })
  const answer = await client.send(new sdk.InvokeEndpointCommand({ EndpointName, ContentType, Body: native }))

  const chat = { messages: [{ role: 'user', content: 'Count to ten.' }], max_tokens: 12, stream: true }
  const Body = JSON.stringify(chat)
  const streamed = await client.send(
    new sdk.InvokeEndpointWithResponseStreamCommand({ EndpointName, ContentType, Body }))
  const parts = []
  for await (const event of streamed.Body) parts.push(text(event.PayloadPart.Bytes))

  const missing = new sdk.InvokeEndpointCommand({ EndpointName: 'nothing', Body: native })
  const error = await client.send(missing).then(() => null, ({ name, message }) => ({ name, message }))

  const { InvokedProductionVariant } = answer
  console.log(JSON.stringify({ InvokedProductionVariant, answer: JSON.parse(text(answer.Body)), parts, error }))
}

main(process.argv[2])
