import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { SECURITY_HEADERS, send } from './answer.ts'
import { drained } from './drained.ts'

interface Frame {
  type: string
  before: string
  between: string
  after: string
}

export function arrayFrame(name: string): Frame {
  return { type: 'application/json', before: `{"${name}":[`, between: ',', after: ']}' }
}

export const LINES: Frame = { type: 'application/x-ndjson', before: '', between: '', after: '' }

const CHUNK = 64 * 1024

/**
 * Writes items as they come, however many there are: one chunk is held in memory, the reader sets the pace, and
 * others get their turn in between. A fault before the first chunk is thrown and can still become an error answer;
 * after it, it breaks the connection, so that nobody takes a part for the whole.
 */
export async function streamJson(
  outgoing: ServerResponse,
  frame: Frame,
  items: AsyncIterable<string>,
): Promise<void> {
  let text = frame.before
  let first = true
  for await (const item of items) {
    if (!first) text += frame.between
    first = false
    text += item
    if (text.length < CHUNK) continue
    if (outgoing.destroyed) return
    if (!outgoing.headersSent) outgoing.writeHead(200, { 'content-type': frame.type, ...SECURITY_HEADERS })
    if (outgoing.write(text)) await setImmediate()
    else await drained(outgoing)
    text = ''
  }
  text += frame.after
  if (!outgoing.headersSent) send(outgoing, 200, frame.type, text)
  else outgoing.end(text)
}
