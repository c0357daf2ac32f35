/** What a program is doing, by what it shows last. */
import type { SessionState } from '../../model/agent.ts'
import type { InputBox, Screen } from '../program.ts'
import type { AnySettings } from './settings.ts'

export interface Patterns {
  /** Of the last lines, the one the cursor is on included. Undefined when nothing known is there. */
  state(lines: readonly string[]): Extract<SessionState, 'idle' | 'busy' | 'waiting_input'> | undefined
  /** The prompt stands in this line, with something typed behind it or nothing. */
  hasPrompt(line: string): boolean
  /** Where the prompt begins in the line the cursor is on, if it stands there. */
  promptIn(line: string): number | undefined
  inputBox(screen: Screen): InputBox
  readonly hasSubmitted: boolean
  /** What shows that it took a message; undefined when nothing was said of it. */
  submitted(id: string): RegExp | undefined
}

/** Agents of one program have the same: the expressions are the larger part of an idle agent's memory. */
const compiled = new Map<string, Patterns>()
const COMPILED = 100

export function compilePatterns(patterns: AnySettings['patterns']): Patterns {
  const key = JSON.stringify(patterns)
  const known = compiled.get(key) ?? compile(patterns)
  if (compiled.size >= COMPILED) compiled.clear()
  compiled.set(key, known)
  return known
}

function compile(patterns: AnySettings['patterns']): Patterns {
  // The user may have written the end of the line already.
  const prompt = patterns.idle.replace(/(?<!\\)\$$/, '')
  const atEnd = new RegExp(`(?:${prompt})$`, 'u')
  const anywhere = new RegExp(prompt, 'u')
  const busy = patterns.busy === undefined ? undefined : new RegExp(patterns.busy, 'gmu')
  const dialog = patterns.dialog === undefined ? undefined : new RegExp(patterns.dialog, 'gmu')

  return {
    state(lines) {
      const text = lines.join('\n')
      const found = [
        // First among equals: what looks like a dialog is not typed into.
        { state: 'waiting_input', end: lastEnd(dialog, text) },
        { state: 'busy', end: lastEnd(busy, text) },
        { state: 'idle', end: atEnd.test(lines.at(-1) ?? '') ? text.length : -1 },
      ] as const
      const furthest = found.reduce((best, one) => (one.end > best.end ? one : best))
      return furthest.end < 0 ? undefined : furthest.state
    },
    hasPrompt: (line) => anywhere.test(line),
    promptIn: (line) => atEnd.exec(line)?.index,
    inputBox({ lines, cursor }) {
      const line = lines[cursor.y] ?? ''
      const before = line.slice(0, cursor.x).padEnd(cursor.x)
      if (line.slice(cursor.x).trim() === '' && atEnd.test(before)) return 'empty'
      return anywhere.test(before) ? 'draft' : 'unknown'
    },
    hasSubmitted: patterns.submitted !== undefined,
    submitted(id) {
      if (patterns.submitted === undefined) return undefined
      return new RegExp(patterns.submitted.replaceAll('{id}', idPattern(id)), 'u')
    },
  }
}

function lastEnd(pattern: RegExp | undefined, text: string): number {
  let end = -1
  if (pattern !== undefined) for (const match of text.matchAll(pattern)) end = match.index + match[0].length
  return end
}

/** msg_1 is the beginning of msg_12. */
function idPattern(id: string): string {
  return `${id.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![0-9])`
}
