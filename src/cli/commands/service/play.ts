import { readFileSync } from 'node:fs'
import { AppError } from '../../../base/errors.ts'
import { openScript, type Script, type ScriptLine, ScriptSettings } from '../../../runtimes/script.ts'
import { noJson } from '../../errors.ts'
import { paint } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'service play',
  summary: 'run a scripted agent in this terminal; for demos and tests',
  details:
    'The script is JSON: { "script": [{ "on": "start" | { "text": … }, "say": …, "after_ms": … }] }.\n' +
    'It runs as an agent with program: any. Its commands carry the nonce of its session, from ORC_NONCE.',
  arguments: [{ name: 'FILE' }],
  examples: ['orc service play worker.json'],
  async run({ words, json }) {
    if (json) throw noJson('play', 'Its output is in the audit: orc audit --follow --json')
    const [file] = words
    const parsed = ScriptSettings.safeParse(readScript(file!))
    if (!parsed.success) {
      const [problem] = parsed.error.issues
      throw new AppError('CONFIG_INVALID', `${file}: ${problem!.path.join('.')}: ${problem!.message}`, {
        hint: 'A script is { "script": [{ "on": "start", "say": "…" }] }.',
      })
    }
    await playOnTerminal(openScript(parsed.data), {
      name: process.env.ORC_AGENT ?? 'agent',
      nonce: process.env.ORC_NONCE ?? '',
    })
    return 0
  },
}

function readScript(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new AppError('CONFIG_INVALID', `${file} is not JSON: ${error.message}`, {
      hint: 'Name a file that contains a script.',
    })
  }
}

interface Player {
  name: string
  /** Added to its commands, which Orchub reads from this terminal. */
  nonce: string
}

/** The patterns that an agent with `program: any` needs to run this player. */
export const PLAYER_PATTERNS = {
  idle: '› $',
  busy: '… thinking$',
  submitted: '^✓ got {id}$',
} as const

const PROMPT = '› '
const PASTE = { on: '\x1b[?2004h', off: '\x1b[?2004l', begin: '\x1b[200~', end: '\x1b[201~' }
const CLEAR_LINE = '\r\x1b[2K'
const SHOWN_LINES = 3

/**
 * A small agent in a terminal with an input box like real ones: it accepts bracketed paste, shows drafts, and submits on
 * Enter. Ends with Ctrl-C or when its terminal closes.
 */
async function playOnTerminal(script: Script, { name, nonce }: Player): Promise<void> {
  const { stdin, stdout } = process
  stdin.setRawMode?.(true)
  stdin.setEncoding('utf8')
  let draft = ''
  let isPasting = false
  let thinking: NodeJS.Timeout | undefined
  const { promise: over, resolve: end } = Promise.withResolvers<void>()

  function prompt() {
    stdout.write(`${CLEAR_LINE}${PROMPT}${shown(draft)}`)
  }

  function answer(line: ScriptLine | undefined) {
    if (line === undefined) {
      prompt()
      return
    }
    stdout.write('… thinking')
    thinking = setTimeout(() => {
      thinking = undefined
      stdout.write(`${CLEAR_LINE}${marked(line.say, nonce)}\n\n`)
      prompt()
    }, line.afterMs)
  }

  function submit() {
    const text = draft
    draft = ''
    stdout.write(CLEAR_LINE)
    for (const message of messagesIn(text)) {
      stdout.write(`✓ got ${message.id}\n${paint('dim', `  ${message.from}: ${message.title}`)}\n`)
    }
    answer(script.toTurn(text))
  }

  function type(input: string) {
    for (const piece of input.split(/(\x1b\[20[01]~|[\r\x03\x7f])/)) {
      if (piece === PASTE.begin) isPasting = true
      else if (piece === PASTE.end) isPasting = false
      else if (piece === '\x03') end()
      else if (piece === '\r' && !isPasting) {
        if (thinking === undefined) submit()
      } else if (piece === '\x7f') draft = draft.slice(0, -1)
      else draft += piece === '\r' ? '\n' : piece
    }
    if (thinking === undefined) prompt()
  }

  stdin.on('data', type)
  stdin.on('end', end)
  stdout.write(`${PASTE.on}${paint('bold', name)} plays its script.\n\n`)
  answer(script.atStart())
  await over
  clearTimeout(thinking)
  stdout.write(PASTE.off)
}

function shown(draft: string): string {
  const lines = draft.split('\n')
  return lines.length > SHOWN_LINES ? `[pasted ${lines.length} lines]` : draft.replaceAll('\n', ' ')
}

function marked(output: string, nonce: string): string {
  return output.replaceAll('<orc-command ', `<orc-command nonce="${nonce}" `)
}

function messagesIn(text: string): { id: string; from: string; title: string }[] {
  return [...text.matchAll(/\[ORCHUB MESSAGE (\S+)\]\nFrom: (.*)\nTitle: (.*)\n/g)].map(
    ([, id, from, title]) => ({ id: id!, from: from!, title: title! }),
  )
}
