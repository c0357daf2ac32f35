import type { Rules } from './compile.ts'
import { considerAction, considerSend, firstVerdict, isDecision, type Step } from './consider.ts'
import { strictest } from './decide.ts'
import type { Action, Decision } from './rule.ts'

export interface Explanation {
  readonly decision: Decision
  /** Every rule looked at, in order. What came after a deciding one had no say and is left out. */
  readonly steps: readonly Step[]
}

/** These are ways of sending, so the recipient must be allowed as well. */
const SENDS: ReadonlySet<Action> = new Set(['urgent', 'broadcast'])

/**
 * Why `from` may or may not write to `to`, or do `action` to it: what `orc rules explain FROM TO [ACTION]` shows.
 * It walks the same steps as the decisions themselves, so it cannot tell another story.
 */
export function explain(rules: Rules, from: string, to: string, action?: Action): Explanation {
  if (action === undefined) return conclude([...untilDecided(considerSend(rules, from, to))])
  const permission = [...untilDecided(considerAction(rules, from, action, to))]
  if (!SENDS.has(action)) return conclude(permission)
  const send = [...untilDecided(considerSend(rules, from, to))]
  return {
    decision: strictest(firstVerdict(send), firstVerdict(permission)),
    steps: [...send, ...permission],
  }
}

function conclude(steps: readonly Step[]): Explanation {
  return { decision: firstVerdict(steps), steps }
}

function* untilDecided(steps: Iterable<Step>): Generator<Step> {
  for (const step of steps) {
    yield step
    if (isDecision(step)) return
  }
}
