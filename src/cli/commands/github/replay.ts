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
import { openClient } from '../../connection/client.ts'
import { loadTeam } from '../../connection/offline.ts'
import { usage } from '../../errors.ts'
import { exitCode } from '../../exit-code.ts'
import { table } from '../../output/layout.ts'
import { complain, paint, plainLine, print, printJson } from '../../output/print.ts'
import type { Unknown } from '../../print-error.ts'
import { untilInterrupted } from '../../signals.ts'
import type { Invocation, Verb } from '../../verb.ts'

/** As the service takes it. */
const EVENT = /^[a-z_]{1,64}$/

export const verb: Verb = {
  name: 'github replay',
  summary: 'process a GitHub payload as if it had just arrived, or preview it',
  details:
    'FILE is the JSON of a webhook, from Recent Deliveries in its settings; - is standard input. With --dry-run nobody is\n' +
    'asked: no service, no model, no GitHub. What only GitHub knows is named as such. --report ROLE=FILE says what would\n' +
    'become of that report. Without --dry-run the running service works on it, and it stays until that is over.',
  arguments: [{ name: 'FILE' }],
  options: [
    {
      name: 'event',
      value: 'NAME',
      summary: 'as X-GitHub-Event has it: issues, issue_comment, pull_request …',
    },
    { name: 'dry-run', summary: 'only say what would happen; nothing is sent' },
    {
      name: 'report',
      value: 'ROLE=FILE',
      summary: 'with --dry-run: a report of that role, and what would become of it',
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
    if (name === undefined) throw usage('--event NAME is missing', 'As X-GitHub-Event has it: --event issues')
    checkEvent(name)
    if (option('report') !== undefined && !flag('dry-run'))
      throw usage('--report goes together with --dry-run', 'Add --dry-run.')
    const payload = readPayload(words[0]!)
    if (flag('dry-run')) return await rehearse(invocation, name, payload)
    const client = await openClient(location)
    const { delivery } = await client.replayEvent({ event: name, payload })
    return await followTrail(client, delivery, json)
  },
}

/** GitHub may have more events than the library knows; a slip in one that is known is more likely than one of those. */
function checkEvent(name: string): void {
  if (EVENT_NAMES.includes(name)) return
  if (!EVENT.test(name) || nearest(name, EVENT_NAMES) !== undefined) throw noSuchEvent(name)
  complain(`"${name}" is no event that is known here; it is taken as it stands.`)
}

/** `issues.opened` is how routes name it; the action is in the payload. */
function noSuchEvent(name: string): AppError {
  return new AppError('USAGE', `GitHub has no event "${name}"`, {
    hint: 'As X-GitHub-Event has it, without the action: issues, issue_comment, pull_request …',
    data: { unknown: { word: name.replace(/\..*/s, ''), among: EVENT_NAMES } satisfies Unknown },
  })
}

async function rehearse(
  { location, option, json }: Invocation,
  name: string,
  payload: Record<string, unknown>,
) {
  const team = createTeam(await loadTeam(location))
  if (team.config.github === undefined) {
    throw new AppError('NOT_FOUND', 'orc.yaml has no "github"', {
      hint: 'orc github setup says how to begin.',
    })
  }
  const event = eventFromFile(name, payload)
  if (event === undefined) throw new AppError('INVALID_REQUEST', 'This is not a GitHub payload')
  const preview = previewEvent(team, event)
  const said = reportFile(option('report'))
  const report = said === undefined ? undefined : previewReport(team, event, said.role, readText(said.file))
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
    print(`Nothing comes of it: ${plainLine(ignored)}.`)
    return
  }
  if (paused)
    print(paint('yellow', 'The team is paused there (AI-PAUSE): only commands of people are heard.'))
  for (const { command, allowed, does } of commands)
    print(`  ${paint(allowed ? 'green' : 'yellow', plainLine(command))}  ${plainLine(does)}`)
  print('')
  print(paint('bold', 'Who gets it'))
  if (steps.length === 0) print('  nobody: nothing is routed for this event')
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
  print(paint('bold', 'What would become of their proposals'))
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
  print(paint('bold', `What would become of the report of ${role}`))
  if (problem !== undefined) print(`  ${paint('red', 'goes back')}  ${plainLine(problem)}`)
  else if (proposals.length === 0) print('  nothing is proposed')
  else
    print(
      table(
        proposals.map(({ verdict, what, why }) => [verdict, plainLine(what), plainLine(why)]),
        '  ',
      ),
    )
  if (flags > 0) print('  What it says of conduct goes to moderators, and nothing of it anywhere else.')
}

function reportFile(said: string | undefined): { role: string; file: string } | undefined {
  if (said === undefined) return undefined
  const at = said.indexOf('=')
  if (at < 1) throw usage('--report needs ROLE=FILE', 'Such as --report triage=report.json')
  return { role: said.slice(0, at), file: said.slice(at + 1) }
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
  throw new AppError('INVALID_REQUEST', `${file === '-' ? 'Standard input' : file} holds no JSON object`, {
    hint: 'Copy the payload from Recent Deliveries in the settings of the webhook.',
  })
}

type Trail = AnswerOf<'githubEvent'>

const AGAIN_MS = 300

/** Shows what comes of an event until nothing more does by itself. */
export async function followTrail(client: Client, delivery: string, json: boolean): Promise<number> {
  if (!json) complain(paint('dim', `It is ${delivery}. Ctrl-C leaves it to the service.`, 'err'))
  let last: Trail | undefined
  const shown = new Set<string>()
  const code = await untilInterrupted(async (signal) => {
    for (;;) {
      last = await client.githubEvent(delivery)
      if (!json) for (const line of linesOf(last)) if (!shown.has(line) && shown.add(line)) print(line)
      if (last.settled || signal.aborted) return
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
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
    yield 'Nobody gets it: no step of its event fits, or nobody fills the role.'
  for (const { role, agent, state: at, task_id } of work)
    yield `${role} → ${agent}: ${at}${task_id === undefined ? '' : ` (${task_id})`}`
  for (const { agent, what, state: at, note: why, request_id, url } of actions) {
    if (at === 'ready' || at === 'acting') continue
    const more = [at === 'done' ? undefined : why, request_id, url].filter((one) => one !== undefined)
    yield `${agent}: ${plainLine(what)}: ${at}${more.length === 0 ? '' : ` (${plainLine(more.join(', '))})`}`
  }
}
