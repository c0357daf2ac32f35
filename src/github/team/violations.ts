import { AppError } from '../../base/errors.ts'
import { tellPeople } from '../../people/notices.ts'
import type { GithubParts } from './settings.ts'

/** So many within the time, and people hear of it. */
const MANY = 3
const WITHIN_MS = 3600_000
const VIOLATION = 'Protocol violation'

export function violation(problem: string): AppError {
  return new AppError('INVALID_COMMAND', `${VIOLATION}: ${problem}`, {
    hint: 'docs/github.md shows the messages.',
  })
}

export function isViolation(error: unknown): error is AppError {
  return error instanceof AppError && error.message.startsWith(VIOLATION)
}

/** S3.25: each is written down, and of one that goes on people hear. What may be about a person is not (S3.15). */
export function createViolations({
  store,
  clock,
  redact,
  team,
}: Pick<GithubParts, 'store' | 'clock' | 'redact' | 'team'>) {
  const times = new Map<string, number[]>()

  return async (agent: string, { message }: AppError, isFlag: boolean): Promise<void> => {
    if (team().isConfidential(agent) || isFlag) return
    const now = clock.now()
    const recent = [...(times.get(agent) ?? []), now].filter((at) => now - at < WITHIN_MS)
    // Told; what comes then counts anew.
    times.set(agent, recent.length === MANY ? [] : recent)
    await store.write(async (tx) => {
      tx.audit({
        type: 'github.violation',
        class: 'internal',
        actor: agent,
        text: redact(`${agent}: ${message}`.slice(0, 500)),
      })
      if (recent.length !== MANY) return
      const question = `${agent} keeps breaking the protocol of the GitHub team`
      const why = `${recent.length} messages within an hour did not fit. The last: ${message}`
      await tellPeople(tx, { agent, question, reason: redact(why.slice(0, 2000)) })
    })
  }
}
