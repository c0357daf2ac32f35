import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../model/settings.ts'

const Rule = z.strictObject({
  on: z
    .union([
      z.literal('start'),
      z.strictObject({ text: z.string().min(1) }),
      z.strictObject({ notice: z.string().min(1) }),
    ])
    .describe('When: at the start, when a turn comes in that holds this text, or a notice that does.'),
  say: z
    .string()
    .min(1)
    .describe('What it says then. {{from}}, {{title}}, {{content}} stand for the message heard.'),
  times: z.int().min(1).max(1_000_000).optional().describe('How often at most.'),
  after_ms: z.int().min(0).max(600_000).optional().describe('How long it thinks first.'),
})

/** An agent that plays a script: for demonstrations and tests, with no model and no network. */
export const ScriptSettings = z.strictObject({
  script: z.array(Rule).min(1).describe('The first rule that fits is played.'),
})
export type ScriptSettings = z.output<typeof ScriptSettings>

export function checkScript(settings: unknown): SettingsProblem[] {
  const parsed = ScriptSettings.safeParse(settings)
  if (parsed.success) return []
  return problemsIn(parsed.error, 'A script is a list of { on: start | { text: … }, say: … }.')
}

export interface Line {
  say: string
  afterMs: number
}

/** What the script says to each thing that happens; undefined where no rule fits. */
export interface Script {
  atStart(): Line | undefined
  toTurn(text: string): Line | undefined
  toNotice(text: string): Line | undefined
}

export function openScript({ script }: ScriptSettings): Script {
  const left = new Map(script.map((rule) => [rule, rule.times ?? Number.POSITIVE_INFINITY]))

  function play(matches: (on: z.output<typeof Rule>['on']) => boolean, heard: Heard): Line | undefined {
    const rule = script.find((one) => matches(one.on) && left.get(one)! > 0)
    if (rule === undefined) return undefined
    left.set(rule, left.get(rule)! - 1)
    return { say: fill(rule.say, heard), afterMs: rule.after_ms ?? 0 }
  }

  return {
    atStart: () => play((on) => on === 'start', hear('')),
    toTurn: (text) => play((on) => on !== 'start' && 'text' in on && text.includes(on.text), hear(text)),
    toNotice: (text) => play((on) => on !== 'start' && 'notice' in on && text.includes(on.notice), hear('')),
  }
}

interface Heard {
  from: string
  title: string
  content: string
}

/** The parts of the last envelope in the text, for the script's answer. */
function hear(text: string): Heard {
  const envelopes = [
    ...text.matchAll(
      /\[ORCHUB MESSAGE (\S+)\]\nFrom: (.*)\nTitle: (.*)\nPriority: .*\n\n([\s\S]*?)\n\n\[END ORCHUB MESSAGE \1\]/g,
    ),
  ]
  const last = envelopes.at(-1)
  return { from: last?.[2] ?? '', title: last?.[3] ?? '', content: last?.[4] ?? '' }
}

function fill(say: string, heard: Heard): string {
  return say.replace(/\{\{(from|title|content)\}\}/g, (_, part: keyof Heard) => heard[part])
}
