/**
 * A program with a prompt in raw mode, like an agent's: it reads a bracketed paste as one text, submits on Enter,
 * writes exactly what it got to a file, and prints `got msg_1`. It obeys these words in a message:
 * say TEXT · work MS · ask (a dialog until y) · exit CODE · daemon (starts a process outside its group) · swallow
 *
 *   node tests/fakes/raw-receiver.ts RECORD [--no-brackets]
 */
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'

const [record, ...flags] = process.argv.slice(2)
const PROMPT = '> '
const PASTE = '\u001b[200~'
const PASTE_END = '\u001b[201~'

let pending = ''
let draft = ''
let isPasting = false
let isAsking = false
let isSwallowing = process.env.RECEIVER_SWALLOWS === '1'
let work = Promise.resolve()

process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8')
if (!flags.includes('--no-brackets')) process.stdout.write('\u001b[?2004h')
prompt()
process.stdin.on('data', (text: string) => {
  pending += text
  while (pending !== '' && takeOne()) {}
})

/** Returns false if more input must come first. */
function takeOne(): boolean {
  if (isPasting) {
    const end = pending.indexOf(PASTE_END)
    const whole = end < 0 ? keepBack(pending, PASTE_END) : end
    type(pending.slice(0, whole).replaceAll('\r', '\n'))
    pending = pending.slice(end < 0 ? whole : end + PASTE_END.length)
    isPasting = end < 0
    return end >= 0
  }
  if (pending.startsWith(PASTE)) {
    isPasting = true
    pending = pending.slice(PASTE.length)
    return true
  }
  if (PASTE.startsWith(pending) && pending.length > 1) return false
  const key = pending[0]!
  pending = pending.slice(1)
  press(key)
  return true
}

function keepBack(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (marker.startsWith(text.slice(-length))) return text.length - length
  }
  return text.length
}

function type(text: string) {
  draft += text
  process.stdout.write(text.replaceAll('\n', '\r\n'))
}

function press(key: string) {
  if (isAsking) answer(key)
  else if (key === '\r') enter()
  else if (key === '\u0003') process.exit(130)
  else if (key === '\u0015') clear()
  else if (key === '\u001b') return
  else type(key)
}

function answer(key: string) {
  note({ answered: key })
  isAsking = false
  process.stdout.write(`${key === '\r' ? 'Enter' : key}\r\n`)
  prompt()
}

function clear() {
  draft = ''
  process.stdout.write('\r\u001b[K')
  prompt()
}

function enter() {
  if (isSwallowing) {
    isSwallowing = false
    return
  }
  const text = draft
  draft = ''
  note({ text, at: performance.timeOrigin + performance.now(), ns: String(process.hrtime.bigint()) })
  process.stdout.write('\r\n')
  for (const [, id] of text.matchAll(/^\[ORCHUB MESSAGE (\S+)\]$/gm)) process.stdout.write(`got ${id}\r\n`)
  work = work.then(() => obey(text))
}

async function obey(text: string) {
  for (const [, verb, rest = ''] of text.matchAll(/^(say|work|ask|exit|daemon|swallow)(?: (.*))?$/gm)) {
    if (verb === 'say') process.stdout.write(`${rest}\r\n`)
    if (verb === 'work') {
      process.stdout.write('working...\r\n')
      await new Promise((resolve) => setTimeout(resolve, Number(rest)))
    }
    if (verb === 'exit') process.exit(Number(rest))
    if (verb === 'daemon') leaveDaemon()
    if (verb === 'swallow') isSwallowing = true
    if (verb === 'ask') {
      isAsking = true
      process.stdout.write('Allow this? [y/N] ')
      return
    }
  }
  prompt()
}

/** Starts a process in its own session whose parent exits: neither the group nor the process tree leads to it. */
function leaveDaemon() {
  spawn('sh', ['-c', 'setsid sleep 1000 >/dev/null 2>&1 &'], { detached: true, stdio: 'ignore' }).unref()
}

function note(entry: Record<string, unknown>) {
  appendFileSync(record!, `${JSON.stringify(entry)}\n`)
}

function prompt() {
  process.stdout.write(PROMPT)
}
