import { foldName } from '../base/agent.ts'
import { parseDuration } from '../base/durations.ts'
import { didYouMean } from '../base/suggestion.ts'
import type { Judge } from '../tasks/task.ts'
import type { Path, Report } from '../yaml/problem.ts'
import type { ConfigInput } from './schema.ts'

/** `undefined` means that orc.yaml doesn't set it and the default applies. */
export interface TasksConfig {
  readonly timeoutMs: number | undefined
  readonly retries: number | undefined
  readonly depth: number | undefined
  readonly reminders: number | undefined
  readonly checks: Readonly<Record<string, CheckConfig>>
  readonly judge: Judge | undefined
  readonly judgeMs: number | undefined
  /** A name from `models`: the model that chooses agents for `orc ask`. */
  readonly selector: string | undefined
  /** A name from `models`: the model that checks people's answers. */
  readonly answerCheck: string | undefined
  /** Null: no timeout. */
  readonly userInputMs: number | null | undefined
}

export interface CheckConfig {
  readonly command: string
  readonly timeoutMs: number
}

const CHECK_MS = 5 * 60_000

export function resolveTasks(
  written: NonNullable<ConfigInput['tasks']>,
  models: Readonly<Record<string, unknown>>,
  agents: readonly string[],
  report: Report,
): TasksConfig {
  const checks = Object.entries(written.checks ?? {}).map(([name, { command, timeout }]) => [
    name,
    { command, timeoutMs: timeout === undefined ? CHECK_MS : parseDuration(timeout) },
  ])
  return {
    timeoutMs: written.timeout === undefined ? undefined : parseDuration(written.timeout),
    retries: written.retries,
    depth: written.depth,
    reminders: written.reminders,
    checks: Object.fromEntries(checks),
    judge: judgeIn(written.judge, Object.keys(models), agents, report),
    judgeMs: written.judge_timeout === undefined ? undefined : parseDuration(written.judge_timeout),
    selector: modelAt(['tasks', 'selector'], written.selector, models, report),
    answerCheck: modelAt(['tasks', 'answer_check'], written.answer_check, models, report),
    userInputMs: userInputMs(written.user_input_timeout),
  }
}

export interface RunsConfig {
  /** A name from `models`: the model that proposes plans. */
  readonly planner: string | undefined
}

export function resolveRuns(
  { planner }: NonNullable<ConfigInput['runs']>,
  models: Readonly<Record<string, unknown>>,
  report: Report,
): RunsConfig {
  return { planner: modelAt(['runs', 'planner'], planner, models, report) }
}

function modelAt(
  path: Path,
  name: string | false | undefined,
  models: Readonly<Record<string, unknown>>,
  report: Report,
): string | undefined {
  if (name === undefined || name === false || name === 'off') return undefined
  if (!Object.hasOwn(models, name)) {
    const otherwise = 'Use a name from "models", or off.'
    report(path, `There is no model "${name}"`, didYouMean(name, Object.keys(models), otherwise))
  }
  return name
}

/** A model or an agent; a name that both have is ambiguous and refused. */
function judgeIn(
  written: string | false | undefined,
  models: readonly string[],
  agents: readonly string[],
  report: Report,
): Judge | undefined {
  if (written === undefined || written === false || written === 'off') return undefined
  const path = ['tasks', 'judge']
  const agent = agents.find((name) => foldName(name) === foldName(written))
  const isModel = models.includes(written)
  if (agent !== undefined && isModel) {
    report(path, `"${written}" is both a model and an agent`, 'Rename one of them.')
    return undefined
  }
  if (agent !== undefined) return { kind: 'agent', name: agent }
  if (isModel) return { kind: 'model', name: written }
  const otherwise = 'Use a name from "models" or "agents", or off.'
  report(
    path,
    `There is no model or agent "${written}"`,
    didYouMean(written, [...models, ...agents], otherwise),
  )
  return undefined
}

function userInputMs(written: string | false | undefined): number | null | undefined {
  if (written === undefined) return undefined
  return written === false || written === 'off' ? null : parseDuration(written)
}
