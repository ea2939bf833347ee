// What eventsource-parser and undici make of the streams of streams.py: JSON lines with `name`, `reader` and `events`.
//
//   npm install eventsource-parser undici && node read.mjs < streams.jsonl > others.jsonl
//
// eventsource-parser is fed text, as its own TransformStream is; undici's EventSourceStream is fed bytes.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const require = createRequire(path.join(process.cwd(), 'package.json'))
const { createParser } = await import(pathToFileURL(require.resolve('eventsource-parser')))
const undici = path.dirname(require.resolve('undici/package.json'))
const { EventSourceStream } = require(path.join(undici, 'lib/web/eventsource/eventsource-stream.js'))

function parsed (chunks) {
  const events = []
  let id = ''
  const parser = createParser({
    onEvent: event => {
      if (event.id !== undefined) id = event.id
      events.push({ event: event.event || 'message', data: event.data, lastEventId: id })
    }
  })
  const decoder = new TextDecoder()
  for (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
  parser.feed(decoder.decode())
  return events
}

async function streamed (chunks) {
  const events = []
  const state = { lastEventId: '', origin: '', reconnectionTime: 0 }
  const stream = new EventSourceStream({
    eventSourceSettings: state,
    push: event => event === null || events.push({ event: event.type, data: event.options.data, lastEventId: event.options.lastEventId })
  })
  stream.resume()
  for (const chunk of chunks) if (chunk.length) stream.write(chunk)
  await new Promise(resolve => { stream.end(resolve) })
  return events
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, chunks_b64: encoded } = JSON.parse(line)
  const chunks = encoded.map(chunk => Buffer.from(chunk, 'base64'))
  for (const [reader, read] of [['eventsource-parser', parsed], ['undici', streamed]]) {
    let events
    try { events = await read(chunks) } catch (error) { events = String(error) }
    console.log(JSON.stringify({ name, reader, events }))
  }
}
