import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { MENTIONS } from '../../protocol/mentions.ts'

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
