import type { Rules } from './compile.ts'
import { considerAction, considerSend, firstVerdict, isDecision, type RuleStep } from './consider.ts'
import { strictest } from './decide.ts'
import type { Action, Decision } from './rule.ts'

export interface Explanation {
  readonly decision: Decision
  /** The rules considered, in order, up to the deciding one. */
  readonly steps: readonly RuleStep[]
}

/** Ways of sending, for which the recipient must be allowed too. */
const SENDS: ReadonlySet<Action> = new Set(['urgent', 'broadcast'])

/**
 * Explains whether `from` may write to `to`, or perform `action` on it, for `orc rules explain FROM TO [ACTION]`. Uses the
 * same steps as the decisions, so the two can't disagree.
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

function conclude(steps: readonly RuleStep[]): Explanation {
  return { decision: firstVerdict(steps), steps }
}

function* untilDecided(steps: Iterable<RuleStep>): Generator<RuleStep> {
  for (const step of steps) {
    yield step
    if (isDecision(step)) return
  }
}
