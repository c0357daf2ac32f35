import { exitCode } from '../../exit-code.ts'
import { paint, plain, print, printJson, type Style } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { CHECKS, type Finding } from './checks.ts'

export const verb: Verb = {
  name: 'doctor',
  group: 'Tools',
  summary: 'check all that the service needs, and the store itself',
  details: 'Exits with 1 if a check fails. While no service runs, the store is read from end to end.',
  examples: ['orc doctor', 'orc doctor --json'],
  async run({ place, json }) {
    const findings: (Finding & { check: string })[] = []
    for (const [check, examine] of Object.entries(CHECKS)) {
      const finding = await examine(place).catch(unexpected)
      findings.push({ check, ...finding })
      if (!json) print(findingText(check, finding))
    }
    const ok = findings.every(({ state }) => state !== 'fail')
    if (json) printJson({ ok, checks: findings })
    return exitCode(ok ? 'ok' : 'error')
  },
}

/** A check that breaks is a check that found something. */
function unexpected(error: Error & { hint?: string }): Finding {
  return { state: 'fail', text: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
}

const COLOUR: Record<Finding['state'], Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

function findingText(check: string, { state, text, hint }: Finding): string {
  const line = `${paint(COLOUR[state], state.padEnd(4))}  ${check.padEnd(12)}  ${plain(text)}`
  return hint === undefined ? line : `${line}\n${' '.repeat(20)}${paint('dim', `hint: ${plain(hint)}`)}`
}
