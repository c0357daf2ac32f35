import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../base/settings-problem.ts'

const Rule = z.strictObject({
  on: z
    .union([
      z.literal('start'),
      z.strictObject({ text: z.string().min(1) }),
      z.strictObject({ notice: z.string().min(1) }),
    ])
    .describe('When to speak: at the start, on a turn that contains this text, or on a notice that does.'),
  say: z
    .string()
    .min(1)
    .describe('The text to say. {{from}}, {{title}} and {{content}} come from the received message.'),
  times: z.int().min(1).max(1_000_000).optional().describe('Maximum number of times.'),
  after_ms: z.int().min(0).max(600_000).optional().describe('Delay before it speaks, in milliseconds.'),
})

/** Settings of an agent that plays a script, for demonstrations and tests without a model or a network. */
export const ScriptSettings = z.strictObject({
  script: z.array(Rule).min(1).describe('The first matching rule is played.'),
})
export type ScriptSettings = z.output<typeof ScriptSettings>

export function checkScript(settings: unknown): SettingsProblem[] {
  const parsed = ScriptSettings.safeParse(settings)
  if (parsed.success) return []
  return problemsIn(parsed.error, 'A script is a list of { on: start | { text: … }, say: … }.')
}

export interface ScriptLine {
  say: string
  afterMs: number
}

export type Script = ReturnType<typeof openScript>

/** The script's response to each event; undefined if no rule matches. */
export function openScript({ script }: ScriptSettings) {
  const left = new Map(script.map((rule) => [rule, rule.times ?? Number.POSITIVE_INFINITY]))

  function play(
    matches: (on: z.output<typeof Rule>['on']) => boolean,
    heard: HeardMessage,
  ): ScriptLine | undefined {
    const rule = script.find((one) => matches(one.on) && left.get(one)! > 0)
    if (rule === undefined) return undefined
    left.set(rule, left.get(rule)! - 1)
    return { say: fill(rule.say, heard), afterMs: rule.after_ms ?? 0 }
  }

  return {
    atStart: () => play((on) => on === 'start', hear('')),
    toTurn: (text: string) =>
      play((on) => on !== 'start' && 'text' in on && text.includes(on.text), hear(text)),
    toNotice: (text: string) =>
      play((on) => on !== 'start' && 'notice' in on && text.includes(on.notice), hear('')),
  }
}

interface HeardMessage {
  from: string
  title: string
  content: string
}

/** Fields of the last envelope in the text, for the script's placeholders. */
function hear(text: string): HeardMessage {
  const envelopes = [
    ...text.matchAll(
      /\[ORCHUB MESSAGE (\S+)\]\nFrom: (.*)\nTitle: (.*)\nPriority: .*\n\n([\s\S]*?)\n\n\[END ORCHUB MESSAGE \1\]/g,
    ),
  ]
  const last = envelopes.at(-1)
  return { from: last?.[2] ?? '', title: last?.[3] ?? '', content: last?.[4] ?? '' }
}

function fill(say: string, heard: HeardMessage): string {
  return say.replace(/\{\{(from|title|content)\}\}/g, (_, part: keyof HeardMessage) => heard[part])
}
