/** A program's state, from its last output. */
import type { SessionState } from '../../base/agent.ts'
import type { InputBox, PaneScreen } from '../program.ts'
import type { AnySettings } from './settings.ts'

export interface Patterns {
  /** Looks at the last lines, including the cursor's. Undefined if nothing matches. */
  state(lines: readonly string[]): Extract<SessionState, 'idle' | 'busy' | 'waiting_input'> | undefined
  /** Whether the prompt is in this line, with or without text behind it. */
  hasPrompt(line: string): boolean
  /** Column at which the prompt begins in the cursor's line, if there is one. */
  promptIn(line: string): number | undefined
  inputBox(screen: PaneScreen): InputBox
  readonly hasSubmitted: boolean
  /** Pattern that shows that it accepted a message, if configured. */
  submitted(id: string): RegExp | undefined
}

/** Shared by agents of one program: the expressions take most of an idle agent's memory. */
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
  // The user may already have written the end of the line.
  const prompt = patterns.idle.replace(/(?<!\\)\$$/, '')
  const atEnd = new RegExp(`(?:${prompt})$`, 'u')
  const anywhere = new RegExp(prompt, 'u')
  const busy = patterns.busy === undefined ? undefined : new RegExp(patterns.busy, 'gmu')
  const dialog = patterns.dialog === undefined ? undefined : new RegExp(patterns.dialog, 'gmu')

  return {
    state(lines) {
      const text = lines.join('\n')
      const found = [
        // First, because text must not be typed into what looks like a dialog.
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

/** msg_1 is a prefix of msg_12. */
function idPattern(id: string): string {
  return `${id.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}(?![0-9])`
}
