import { readFileSync } from 'node:fs'
import type { AnswerOf } from '../../../api/contract.ts'
import { AppError } from '../../../base/errors.ts'
import { nearest } from '../../../base/suggestion.ts'
import type { Client } from '../../../client/client.ts'
import { createTeam } from '../../../commands/team.ts'
import {
  EVENT_NAMES,
  eventFromFile,
  type Preview,
  type PreviewedReport,
  previewEvent,
  previewReport,
} from '../../../github/preview.ts'
import { loadTeam, openClient } from '../../connection/client.ts'
import { exitCode, usage } from '../../errors.ts'
import { table } from '../../output/layout.ts'
import { complain, paint, plainLine, print, printJson, remark } from '../../output/print.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Invocation, Verb } from '../../verb.ts'

/** The same check as in the service. */
const EVENT = /^[a-z_]{1,64}$/

export const verb: Verb = {
  name: 'github replay',
  summary: 'process a GitHub payload as if it had just arrived, or preview it',
  details:
    'FILE is the JSON of a webhook, from Recent Deliveries in its settings; - reads standard input. --dry-run contacts no\n' +
    'service, no model and not GitHub, and marks what only GitHub knows. --report ROLE=FILE also shows what would happen\n' +
    'with that report. Without --dry-run, the running service processes the payload, and the command waits for the end.',
  arguments: [{ name: 'FILE' }],
  options: [
    {
      name: 'event',
      value: 'NAME',
      summary: 'the X-GitHub-Event header: issues, issue_comment, pull_request …',
    },
    { name: 'dry-run', summary: 'show what would happen, without doing it' },
    {
      name: 'report',
      value: 'ROLE=FILE',
      summary: 'with --dry-run: also preview a report of this role',
    },
  ],
  examples: [
    'orc github replay opened.json --event issues --dry-run',
    'orc github replay opened.json --event issues --dry-run --report triage=report.json',
    'orc github replay opened.json --event issues',
  ],
  async run(invocation) {
    const { words, option, flag, location, json } = invocation
    const name = option('event')
    if (name === undefined)
      throw usage('--event NAME is missing', 'Use the value of X-GitHub-Event, such as --event issues.')
    checkEvent(name)
    if (option('report') !== undefined && !flag('dry-run'))
      throw usage('--report needs --dry-run', 'Add --dry-run.')
    const payload = readPayload(words[0]!)
    if (flag('dry-run')) return await previewPayload(invocation, name, payload)
    const client = await openClient(location)
    const { delivery } = await client.replayEvent({ event: name, payload })
    return await followTrail(client, delivery, json)
  },
}

/** Accepts unknown events, because GitHub may add some, unless the name looks like a typo of a known one. */
function checkEvent(name: string): void {
  if (EVENT_NAMES.includes(name)) return
  if (!EVENT.test(name) || nearest(name, EVENT_NAMES) !== undefined) throw noSuchEvent(name)
  complain(`"${name}" is not a known GitHub event; using it anyway.`)
}

/** Routes say `issues.opened`, but the header has only `issues`; the action is in the payload. */
function noSuchEvent(name: string): AppError {
  const hint = 'Use the value of X-GitHub-Event, without the action: issues, issue_comment, pull_request …'
  return usage(`GitHub has no event "${name}"`, hint, { word: name.replace(/\..*/s, ''), among: EVENT_NAMES })
}

async function previewPayload(
  { location, option, json }: Invocation,
  name: string,
  payload: Record<string, unknown>,
) {
  const team = createTeam(await loadTeam(location))
  if (team.config.github === undefined) {
    throw new AppError('NOT_FOUND', 'orc.yaml has no "github"', {
      hint: 'orc github setup explains how to start.',
    })
  }
  const event = eventFromFile(name, payload)
  if (event === undefined) throw new AppError('INVALID_REQUEST', 'This is not a GitHub payload')
  const preview = previewEvent(team, event)
  const file = reportFile(option('report'))
  const report = file === undefined ? undefined : previewReport(team, event, file.role, readText(file.file))
  if (json) printJson({ ...preview, ...(report === undefined ? {} : { report }) })
  else show(preview, report)
  return exitCode(report?.problem === undefined ? 'ok' : 'error')
}

function show(
  { event, ignored, paused, commands, steps, policies }: Preview,
  report: PreviewedReport | undefined,
) {
  const where = event.repository === undefined ? '' : ` in ${event.repository}`
  const thread = event.number === undefined ? '' : `, #${event.number} ${plainLine(event.title ?? '')}`
  const who = event.author === undefined ? '' : `, by ${event.author} (${event.association})`
  print(`${paint('bold', plainLine(event.type))}${plainLine(`${where}${thread}${who}`)}`)
  if (ignored !== undefined) {
    print(`Ignored: ${plainLine(ignored)}.`)
    return
  }
  if (paused) print(paint('yellow', 'The team is paused there (AI-PAUSE): only commands of people work.'))
  for (const { command, allowed, does } of commands)
    print(`  ${paint(allowed ? 'green' : 'yellow', plainLine(command))}  ${plainLine(does)}`)
  print('')
  print(paint('bold', 'Routed to'))
  if (steps.length === 0) print('  nobody: no route matches this event')
  else {
    const rows = steps.map(({ role, agent, outcome, why, after }) => [
      outcome,
      role,
      agent === undefined ? '' : `→ ${agent}`,
      `${why}${after === undefined ? '' : `; after ${after}`}`,
    ])
    print(table(rows, '  '))
  }
  if (report !== undefined) return showReport(report)
  if (!steps.some(({ outcome }) => outcome !== 'left out')) return
  print('')
  print(paint('bold', 'Policies for their proposals'))
  print(
    table(
      policies.map(({ kind, text }) => [kind.replace('_', ' '), text]),
      '  ',
    ),
  )
  print('  merge, force-push, delete, settings, bans: never')
}

function showReport({ role, problem, proposals, flags }: PreviewedReport) {
  print('')
  print(paint('bold', `Effect of the report of ${role}`))
  if (problem !== undefined) print(`  ${paint('red', 'returned')}  ${plainLine(problem)}`)
  else if (proposals.length === 0) print('  no proposals')
  else
    print(
      table(
        proposals.map(({ verdict, what, why }) => [verdict, plainLine(what), plainLine(why)]),
        '  ',
      ),
    )
  if (flags > 0) print('  Its conduct flags go to moderators only.')
}

function reportFile(option: string | undefined): { role: string; file: string } | undefined {
  if (option === undefined) return undefined
  const at = option.indexOf('=')
  if (at < 1) throw usage('--report needs ROLE=FILE', 'Example: --report triage=report.json')
  return { role: option.slice(0, at), file: option.slice(at + 1) }
}

function readText(file: string): string {
  return readFileSync(file === '-' ? 0 : file, 'utf8')
}

function readPayload(file: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(readText(file))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new AppError('INVALID_REQUEST', `${file === '-' ? 'Standard input' : file} is not a JSON object`, {
    hint: 'Copy the payload from Recent Deliveries in the settings of the webhook.',
  })
}

type Trail = AnswerOf<'githubEvent'>

const POLL_MS = 300

/** Shows the effects of an event until it is settled. */
async function followTrail(client: Client, delivery: string, json: boolean): Promise<number> {
  if (!json) remark(`Replaying as ${delivery}. Ctrl-C leaves the service working on it.`)
  let last: Trail | undefined
  const shown = new Set<string>()
  const code = await untilInterrupted(async (signal) => {
    for (;;) {
      last = await client.githubEvent(delivery)
      if (!json) for (const line of linesOf(last)) if (!shown.has(line) && shown.add(line)) print(line)
      if (last.settled || signal.aborted) return
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  })
  if (json && last !== undefined) printJson(last)
  if (code !== 0 || last === undefined) return code
  const isBad =
    last.state === 'failed' || [...last.work, ...last.actions].some(({ state }) => state === 'failed')
  return exitCode(isBad ? 'error' : 'ok')
}

function* linesOf({ state, note, work, actions }: Trail): Generator<string> {
  if (state !== 'waiting' && (state !== 'routed' || note !== undefined))
    yield `${state}: ${plainLine(note ?? '')}`
  if (state === 'routed' && note === undefined && work.length === 0 && actions.length === 0)
    yield 'No agent gets it: no route matches the event, or no agent has the role.'
  for (const { role, agent, state: at, task_id } of work)
    yield `${role} → ${agent}: ${at}${task_id === undefined ? '' : ` (${task_id})`}`
  for (const { agent, what, state: at, note: why, request_id, url } of actions) {
    if (at === 'ready' || at === 'acting') continue
    const more = [at === 'done' ? undefined : why, request_id, url].filter((one) => one !== undefined)
    yield `${agent}: ${plainLine(what)}: ${at}${more.length === 0 ? '' : ` (${plainLine(more.join(', '))})`}`
  }
}
