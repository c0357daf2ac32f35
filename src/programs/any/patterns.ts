import { z } from 'zod'
import type { SessionState } from '../../base/agent.ts'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { MENTIONS } from '../../protocol/mentions.ts'
import type { DeliveryResult, Turn } from '../../runtimes/runtime.ts'
import type { InputBox, PaneScreen } from '../program.ts'

const Pattern = z.string().min(1).max(1000).refine(isPattern, 'is not a valid regular expression')

/** A program known only by its user's settings here. */
export const AnySettings = z.strictObject({
  command: z
    .union([z.string().min(1), z.array(z.string()).min(1)])
    .describe('The executable (name or path), or a list of it and its arguments.'),
  args: z.array(z.string()).default([]).describe('Additional arguments.'),
  env: z
    .record(z.string().regex(/^[A-Za-z_]\w*$/), z.string())
    .default({})
    .describe('Additional environment variables.'),
  model: z.string().min(1).optional().describe('Passed to the program as ORC_MODEL.'),
  prompt: z
    .enum(['paste', 'argument', 'none'])
    .default('none')
    .describe('How it gets its role: pasted as the first turn, passed as the last argument, or not at all.'),
  patterns: z
    .strictObject({
      idle: Pattern.describe("End of the cursor's line while it waits for its next turn."),
      busy: Pattern.optional().describe('Shown while it works.'),
      dialog: Pattern.optional().describe('Shown when it asks a person something.'),
      submitted: Pattern.optional().describe('Shown when it has accepted a message; {id} is the message id.'),
    })
    .describe('Regular expressions for its last lines, without colours; the lowest match decides.'),
  enter_after_ms: z.int().min(0).max(10_000).default(0).describe('Delay between the text and Enter.'),
  evidence_ms: z.int().min(100).max(600_000).default(5000).describe('How long to wait for `submitted`.'),
  patience_ms: z.int().min(0).max(600_000).default(30_000).describe('How long to wait for a free input box.'),
  bracketed_paste: z
    .boolean()
    .default(true)
    .describe('Paste only after it enabled bracketed paste; false for a program that reads plain lines.'),
  mentions: z
    .enum(MENTIONS)
    .optional()
    .describe('Where it treats @name in a message as a file to read: `alone`, or `anywhere`.'),
  interrupt: z
    .array(z.string().regex(/^[A-Za-z0-9-]{1,20}$/))
    .min(1)
    .optional()
    .describe('Keys that interrupt a turn, by their tmux names, such as [Escape] or [C-c].'),
})
export type AnySettings = z.output<typeof AnySettings>

function isPattern(source: string): boolean {
  try {
    new RegExp(source.replaceAll('{id}', 'msg_1'), 'u')
    return true
  } catch {
    return false
  }
}

export function checkAny(settings: unknown): SettingsProblem[] {
  const parsed = AnySettings.safeParse(settings)
  if (parsed.success) return []
  return problemsIn(parsed.error, 'Example: { command: [my-agent, --tui], patterns: { idle: "> $" } }')
}

export type Patterns = ReturnType<typeof compilePatterns>

export function compilePatterns(patterns: AnySettings['patterns']) {
  // The user may already have written the end of the line.
  const prompt = patterns.idle.replace(/(?<!\\)\$$/, '')
  const atEnd = new RegExp(`(?:${prompt})$`, 'u')
  const anywhere = new RegExp(prompt, 'u')
  const busy = patterns.busy === undefined ? undefined : new RegExp(patterns.busy, 'gmu')
  const dialog = patterns.dialog === undefined ? undefined : new RegExp(patterns.dialog, 'gmu')

  return {
    /** Looks at the last lines, including the cursor's. Undefined if nothing matches. */
    state(lines: readonly string[]): Extract<SessionState, 'idle' | 'busy' | 'waiting_input'> | undefined {
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
    /** Whether the prompt is in this line, with or without text behind it. */
    hasPrompt: (line: string) => anywhere.test(line),
    /** Column at which the prompt begins in the cursor's line, if there is one. */
    promptIn: (line: string) => atEnd.exec(line)?.index,
    inputBox({ lines, cursor }: PaneScreen): InputBox {
      const line = lines[cursor.y] ?? ''
      const before = line.slice(0, cursor.x).padEnd(cursor.x)
      if (line.slice(cursor.x).trim() === '' && atEnd.test(before)) return 'empty'
      return anywhere.test(before) ? 'draft' : 'unknown'
    },
    hasSubmitted: patterns.submitted !== undefined,
    /** Pattern that shows that it accepted a message, if configured. */
    submitted(id: string): RegExp | undefined {
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

const FRAME = /\[ORCHUB MESSAGE \S+\]/
export const FRAME_END = /\[END ORCHUB MESSAGE \S+\]/

/**
 * Tells for each line whether it is the program's own: our text comes back as its echo, and may contain
 * anything.
 */
export function createFrameFilter(): (line: string) => boolean {
  let isInFrame = false
  return (line) => {
    if (FRAME_END.test(line)) isInFrame = false
    else if (FRAME.test(line)) isInFrame = true
    return !isInFrame
  }
}

export type EvidenceWatch = ReturnType<typeof watchEvidence>

/**
 * Uses the `submitted` pattern with each message's id. Without one, a program that showed the text and then
 * its busy pattern has accepted it: the echo proves that the text arrived, and leaving the prompt that Enter
 * did. Neither alone proves anything, so anything else stays uncertain. For a turn without ids, which is
 * never located later, the prompt below the echo suffices as well.
 */
export function watchEvidence(turn: Turn, patterns: Patterns) {
  const { promise: evidence, resolve } = Promise.withResolvers<DeliveryResult>()
  /** Created with the first line: until then the turn is on its way and must not be delayed. */
  let awaited: Map<string, RegExp> | undefined
  const isByPattern = turn.ids.length > 0 && patterns.hasSubmitted
  const lastLine = turn.text.trimEnd().split('\n').at(-1)!.trim()
  const isProgramsOwn = createFrameFilter()
  let isEchoed = false
  let isGiven = false

  function give(result: DeliveryResult) {
    isGiven = true
    resolve(result)
  }

  return {
    evidence,
    get isGiven() {
      return isGiven
    },
    line(text: string) {
      if (lastLine !== '' && text.includes(lastLine)) isEchoed = true
      if (!isProgramsOwn(text) || !isByPattern) return
      awaited ??= new Map(turn.ids.map((id) => [id, patterns.submitted(id)!]))
      for (const [id, pattern] of awaited) if (pattern.test(text)) awaited.delete(id)
      if (awaited.size > 0) return
      give({ state: 'submitted', evidence: `the pane shows ${JSON.stringify(text.trim().slice(0, 200))}` })
    },
    /** The program shows that it works, or its prompt again. */
    state(seen: 'busy' | 'idle') {
      if (isByPattern || !isEchoed || (seen === 'idle' && turn.ids.length > 0)) return
      const then = seen === 'busy' ? 'that the program is busy' : 'its prompt'
      give({ state: 'submitted', evidence: `the pane shows the text, and then ${then}` })
    },
    /** Ends the watch, whatever comes later. */
    give,
  }
}
