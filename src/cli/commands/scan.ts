import { createReadStream } from 'node:fs'
import type { Scanned } from '../../wire/scanner.ts'
import { exitCode } from '../exit-code.ts'
import { noteTypedInput } from '../input.ts'
import { indent } from '../mail-text.ts'
import { complain, paint, plain, print, printJson } from '../output.ts'
import type { Verb } from '../verb.ts'

/** No mistakes: an agent may well show a command to another, or quote an answer. */
const QUOTED = new Set<string>(['IN_CODE_BLOCK', 'IN_RESPONSE_BLOCK', 'IN_ECHO'])

export const verb: Verb = {
  name: 'scan',
  group: 'Tools',
  summary: 'show which commands would be extracted from a text, and why the rest would not',
  details:
    'Reads FILE, or standard input without one or with -. Nothing is carried out and no service is needed.\n' +
    'With --json each line is {"ok":true,"type","fields","offset","line"} or {"ok":false,"code","message","offset","line"};\n' +
    'offsets count bytes, and fields are as they were said.',
  arguments: [{ name: 'FILE|-', optional: true }],
  options: [
    {
      name: 'strict',
      summary: 'exit with 1 if something looks like a command but is none, unless it is quoted',
    },
  ],
  examples: ['orc scan answer.txt', 'my-agent | orc scan - --json', 'orc scan --strict prompts/worker.md'],

  async run({ words, flag, json }) {
    const [{ createScanner }, { knownCommands }, { createRegistry }] = await Promise.all([
      import('../../wire/scanner.ts'),
      import('../../engine/listener.ts'),
      import('../../model/registry.ts'),
    ])
    const scanner = createScanner(knownCommands(createRegistry()))
    const counts = { commands: 0, mistakes: 0, quoted: 0 }
    const show = (found: Scanned) => {
      if (found.ok) counts.commands += 1
      else counts[QUOTED.has(found.code) ? 'quoted' : 'mistakes'] += 1
      if (json) printJson(jsonOf(found))
      else print(textOf(found))
    }
    const file = words[0] ?? '-'
    if (file === '-') noteTypedInput()
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file))
      scanner.push(chunk).forEach(show)
    scanner.end().forEach(show)
    if (!json) complain(summary(counts))
    return exitCode(flag('strict') && counts.mistakes > 0 ? 'error' : 'ok')
  },
}

function jsonOf(found: Scanned) {
  const { offset, line } = found.span
  if (found.ok) return { ok: true, type: found.type, fields: found.fields, offset, line }
  return { ok: false, code: found.code, message: found.message, offset, line }
}

function textOf(found: Scanned): string {
  const place = paint('dim', `line ${found.span.line}`)
  if (!found.ok) {
    const code = paint(QUOTED.has(found.code) ? 'dim' : 'red', found.code)
    return `${place}  ${code}  ${plain(found.message)}\n    ${paint('dim', `hint: ${plain(found.hint)}`)}`
  }
  const fields = Object.entries(found.fields).map(([name, value]) => fieldText(name, plain(value)))
  const ignored = found.ignored.length === 0 ? [] : [`    not used: ${plain(found.ignored.join(', '))}`]
  return [`${place}  ${paint('green', found.type)}`, ...fields, ...ignored].join('\n')
}

function fieldText(name: string, value: string): string {
  return value.includes('\n') ? `    ${name}:\n${indent(indent(value))}` : `    ${name}: ${value}`
}

function summary({
  commands,
  mistakes,
  quoted,
}: {
  commands: number
  mistakes: number
  quoted: number
}): string {
  const parts = [`${commands} ${commands === 1 ? 'command' : 'commands'}`]
  if (mistakes > 0) parts.push(`${mistakes} with a mistake`)
  if (quoted > 0) parts.push(`${quoted} quoted and left alone`)
  return parts.join(', ')
}
