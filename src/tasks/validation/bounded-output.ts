import { stripVTControlCharacters } from 'node:util'

/** Keeps the beginning and the end of what a process prints, however much that is. */
export function createBoundedOutput(headBytes: number, tailBytes: number) {
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)
  let dropped = 0

  return {
    push(piece: Buffer) {
      const room = headBytes - head.length
      if (room > 0) head = Buffer.concat([head, piece.subarray(0, room)])
      if (piece.length <= room) return
      tail = Buffer.concat([tail, piece.subarray(Math.max(0, room))])
      // Twice as much is kept for a while, so that not every piece is copied.
      if (tail.length <= 2 * tailBytes) return
      dropped += tail.length - tailBytes
      tail = tail.subarray(-tailBytes)
    },
    text(): string {
      const surplus = Math.max(0, tail.length - tailBytes)
      const left = dropped + surplus
      if (left === 0) return printable(Buffer.concat([head, tail]).toString('utf8'))
      const end = tail
        .subarray(surplus)
        .toString('utf8')
        .replace(/^\ufffd+/, '')
      const begin = head.toString('utf8').replace(/\ufffd+$/, '')
      return `${printable(begin)}\n[… ${left} bytes left out …]\n${printable(end)}`
    },
  }
}

/** It ends up in messages, prompts and terminals. */
function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/\r\n?/g, '\n')
    .replace(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, '')
}
