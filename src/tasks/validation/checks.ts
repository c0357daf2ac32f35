/** Checks: shell commands that must succeed before a claim counts. Runs use them too. */
import type { Config } from '../../config/config.ts'
import type { CheckResult, Findings } from '../task.ts'
import type { CheckRun } from './check-process.ts'

export interface Check {
  name: string
  /** A shell command from orc.yaml, or of a delegator with the permission. */
  command: string
  timeoutMs: number
}

/** Marks a command among check names; no name can contain it. */
const DECLARED_PREFIX = 'sh: '
const DECLARED_CHECK_MS = 5 * 60_000

/** A check that the delegator declared as a command. */
export function declaredCheck(command: string): string {
  return `${DECLARED_PREFIX}${command}`
}

/** Undefined if orc.yaml no longer has a check of that name. */
export function findCheck({ tasks }: Config, check: string): Check | undefined {
  if (check.startsWith(DECLARED_PREFIX)) {
    const command = check.slice(DECLARED_PREFIX.length)
    return { name: command, command, timeoutMs: DECLARED_CHECK_MS }
  }
  return Object.hasOwn(tasks.checks, check) ? { name: check, ...tasks.checks[check]! } : undefined
}

/** The sum of their timeouts, because they run one after the other. */
export function longestRun(config: Config, checks: readonly string[]): number {
  return checks.reduce((sum, check) => sum + (findCheck(config, check)?.timeoutMs ?? 0), 0)
}

/** Characters kept of a passed check's output. */
const PASSED_OUTPUT = 1000

export function resultOf(name: string, { exitCode, output, stopped, ms }: CheckRun): CheckResult {
  const passed = stopped === undefined && exitCode === 0
  const why = stopped ?? `exit code ${exitCode ?? 'unknown: a signal ended it'}`
  const shown = passed && output.length > PASSED_OUTPUT ? `…${output.slice(-PASSED_OUTPUT)}` : output
  return { name, passed, exitCode, why, output: shown.toWellFormed(), ms }
}

/** For the worker, the judge and people. */
export function findingsText({ checks, commit, dirty }: Findings): string {
  const version = commit === undefined ? [] : [`at commit ${commit}${dirty ? ', not all committed' : ''}`]
  return [...version, ...checks.map(resultText)].join('\n')
}

function resultText({ name, passed, why, output }: CheckResult): string {
  const printed = output.trim() === '' ? '' : `\n${output.trim()}`
  return `${name} ${passed ? 'passed' : 'failed'} (${why})${printed}`
}
