import type { Config } from '../../config/config.ts'
import type { CheckResult, Findings } from '../task.ts'
import type { Ran } from './check-process.ts'

export interface Check {
  name: string
  /** For the shell: from orc.yaml, or of a delegator that has the permission. */
  command: string
  timeoutMs: number
}

const DECLARED = 'sh: '
/** What a command that a delegator declared itself may take. */
const DECLARED_CHECK_MS = 5 * 60_000

/** A check that is a command itself stands among the names with a mark that no name can have. */
export function declaredCheck(command: string): string {
  return `${DECLARED}${command}`
}

/** Undefined for the name of a check that orc.yaml does not have any more. */
export function findCheck({ tasks }: Config, check: string): Check | undefined {
  if (check.startsWith(DECLARED)) {
    const command = check.slice(DECLARED.length)
    return { name: command, command, timeoutMs: DECLARED_CHECK_MS }
  }
  return Object.hasOwn(tasks.checks, check) ? { name: check, ...tasks.checks[check]! } : undefined
}

/** How long all of them may take, one after the other. */
export function longestRun(config: Config, checks: readonly string[]): number {
  return checks.reduce((sum, check) => sum + (findCheck(config, check)?.timeoutMs ?? 0), 0)
}

/** Of a check that passed, as much as shows what it did. */
const PASSED_OUTPUT = 1000

export function resultOf(name: string, { exitCode, output, stopped, ms }: Ran): CheckResult {
  const passed = stopped === undefined && exitCode === 0
  const why = stopped ?? `exit code ${exitCode ?? 'unknown: a signal ended it'}`
  const shown = passed && output.length > PASSED_OUTPUT ? `…${output.slice(-PASSED_OUTPUT)}` : output
  return { name, passed, exitCode, why, output: shown.toWellFormed(), ms }
}

/** For the worker, the judge and people. */
export function findingsText({ checks, commit, dirty }: Findings): string {
  const place = commit === undefined ? [] : [`at commit ${commit}${dirty ? ', not all committed' : ''}`]
  return [...place, ...checks.map(resultText)].join('\n')
}

function resultText({ name, passed, why, output }: CheckResult): string {
  const printed = output.trim() === '' ? '' : `\n${output.trim()}`
  return `${name} ${passed ? 'passed' : 'failed'} (${why})${printed}`
}
