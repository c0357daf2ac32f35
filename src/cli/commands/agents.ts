import { spawnSync } from 'node:child_process'
import type { AnswerOf } from '../../api/contract.ts'
import { formatDuration } from '../../base/durations.ts'
import { AppError } from '../../base/errors.ts'
import type { AgentAction } from '../../protocol/command.ts'
import type { Receipt } from '../../protocol/receipt.ts'
import { askIfRunning, loadTeam, openClient } from '../connection/client.ts'
import type { TeamLocation } from '../connection/connection.ts'
import { exitCode, usage } from '../errors.ts'
import { paint, plain, plainLine, printJson } from '../output/print.ts'
import { showAnyReceipt } from '../output/receipt-text.ts'
import type { Invocation, Verb } from '../verb.ts'

/** A verb that sends one `request_action` per agent. */
function actionVerb(action: AgentAction, about: Pick<Verb, 'name' | 'summary'> & Partial<Verb>): Verb {
  return {
    arguments: [{ name: 'AGENT', rest: true }],
    options: [{ name: 'reason', value: 'TEXT', summary: 'the reason, for the audit log' }],
    examples: [`orc ${about.name} Worker`, `orc ${about.name} Worker Reviewer --reason "a new task"`],
    ...about,
    run: (invocation) => actOn(action, invocation),
  }
}

async function actOn(action: AgentAction, { location, words, given, json }: Invocation): Promise<number> {
  const client = await openClient(location)
  let code = 0
  for (const target of words) {
    const receipt = (await client.command({
      type: 'request_action',
      action,
      target,
      ...given('reason'),
    })) as Receipt
    code = Math.max(code, showAnyReceipt(receipt, json))
  }
  return code
}

export const start = actionVerb('spawn_agent', {
  name: 'agent start',
  summary: 'start an agent; it continues its last conversation',
})

export const reset = actionVerb('reset_session', {
  name: 'agent reset',
  summary: 'start a new conversation with an agent and restore its role',
})

export const pause = actionVerb('pause_session', {
  name: 'agent pause',
  summary: 'hold deliveries to an agent without interrupting it',
})

export const resume = actionVerb('resume_session', {
  name: 'agent resume',
  summary: 'resume deliveries to a paused agent',
  details: 'After `orc service halt`, use `orc service go` instead.',
})

const stopOne = actionVerb('terminate_agent', {
  name: 'agent stop',
  summary: 'stop an agent and every process it started; --all halts everything',
  details: 'An agent stays stopped until `orc agent start`. --all is the same as `orc service halt`.',
})

export const stop = {
  ...stopOne,
  arguments: [{ name: 'AGENT', rest: true, optional: true }],
  options: [{ name: 'all', summary: 'halt everything until `orc service go`' }, ...(stopOne.options ?? [])],
  examples: ['orc agent stop Worker', 'orc agent stop --all --reason "stuck in a loop"'],
  run: (invocation: Invocation) => (invocation.flag('all') ? stopAll(invocation) : stopSome(invocation)),
} as const satisfies typeof stopOne

/** The same as `orc agent stop --all`. */
export const halt: Verb = {
  name: 'service halt',
  summary: 'interrupt every agent and hold everything until `orc service go`',
  details:
    'Until `orc service go`, Orchub delivers and starts nothing, stops all timers, and refuses commands of agents. A\n' +
    'restart does not end a halt. The service itself keeps running; `orc down` stops it.',
  options: stopOne.options ?? [],
  examples: ['orc service halt', 'orc service halt --reason "stuck in a loop"'],
  run: stopAll,
}

async function stopSome(invocation: Invocation): Promise<number> {
  if (invocation.words.length > 0) return await stopOne.run(invocation)
  throw usage(
    'AGENT is missing',
    'orc agent stop AGENT stops one agent; orc agent stop --all halts everything.',
  )
}

async function stopAll({ location, words, given, show }: Invocation): Promise<number> {
  if (words.length > 0) {
    throw usage(
      "--all can't be combined with agent names",
      'Drop --all or the names. A reason goes into --reason "…".',
    )
  }
  const client = await openClient(location)
  const answer = await client.halt(given('reason'))
  show(answer, () => haltText(answer))
  return answer.interrupts.every(({ stopped }) => stopped) ? 0 : 1
}

function haltText({ already, halt, interrupts }: AnswerOf<'halt'>): string {
  const why = halt.reason === undefined ? '' : `: ${plainLine(halt.reason)}`
  const lines = [already ? `Already halted by ${halt.by}${why}.` : paint('bold', `Halted${why}.`)]
  for (const { agent, stopped, evidence } of interrupts) {
    lines.push(
      stopped
        ? `  interrupted ${agent}: ${plainLine(evidence)}`
        : paint('red', `  ${agent} did not stop: ${plainLine(evidence)}. Stop it: orc agent stop ${agent}`),
    )
  }
  return [...lines, 'Resume with orc service go.'].join('\n')
}

export const go: Verb = {
  name: 'service go',
  summary: 'resume everything after `orc service halt`',
  details:
    'Deliveries resume, timers continue with the time they had left, and Orchub notifies agents it interrupted or refused.',
  examples: ['orc service go', 'orc service go --json'],
  async run({ location, show }) {
    const answer = await (await openClient(location)).go()
    const { halt, told, lasted_seconds = 0 } = answer
    const notified = told.length === 0 ? '' : ` Notified: ${told.join(', ')}.`
    return show(answer, () =>
      halt === undefined
        ? 'Orchub was not halted.'
        : `Work resumes after ${formatDuration(lasted_seconds * 1000)}.${notified}`,
    )
  },
}

export const attach: Verb = {
  name: 'attach',
  summary: "open an agent's terminal in yours; Ctrl-b d leaves it",
  details: 'While you type a draft, messages to that agent wait; Orchub never pastes into a draft.',
  arguments: [{ name: 'AGENT' }],
  options: [{ name: 'read-only', summary: 'watch without typing' }],
  examples: ['orc attach Worker', 'orc attach Worker --read-only', 'orc attach Worker --json'],
  async run({ location, words, flag, json }) {
    const [agent] = words
    const client = await openClient(location)
    const { view, ...about } = await client.terminal(agent!, { lines: 1 })
    if (view === undefined) {
      throw new AppError('CONFLICT', `${about.agent} has no terminal`, {
        hint: `Its messages are in the audit: orc audit --agent ${about.agent} --follow`,
      })
    }
    const argv = flag('read-only') ? [...view, '-r'] : view
    if (json) {
      printJson({ agent: about.agent, command: argv })
      return 0
    }
    if (process.stdin.isTTY !== true || process.stdout.isTTY !== true) {
      const hint = `orc logs ${about.agent} prints its screen. In a terminal, run: ${argv.join(' ')}`
      throw usage('orc attach needs a terminal', hint)
    }
    // tmux refuses to nest sessions while TMUX is set.
    const { TMUX: _, ...env } = process.env
    const { status, error } = spawnSync(argv[0]!, argv.slice(1), { stdio: 'inherit', env })
    if (error !== undefined) throw new AppError('RUNTIME_MISSING', error.message, { hint: 'Install tmux.' })
    return status ?? exitCode('error')
  },
}

export const logs: Verb = {
  name: 'logs',
  summary: "print the last lines of an agent's terminal",
  arguments: [{ name: 'AGENT' }],
  options: [{ name: 'lines', short: 'n', value: 'N', summary: 'number of lines (default: 200)' }],
  examples: ['orc logs Worker', 'orc logs Worker -n 20', 'orc logs Worker --json'],
  async run({ location, words, option, show }) {
    const lines = Number(option('lines') ?? 200)
    if (!Number.isInteger(lines) || lines < 1 || lines > 10_000) {
      throw usage(`"${option('lines')}" is not a valid number of lines`, 'Use a number from 1 to 10000.')
    }
    const client = await openClient(location)
    const { view: _, ...about } = await client.terminal(words[0]!, { lines })
    return show(about, () => plain(about.screen))
  },
}

export const prompt: Verb = {
  name: 'agent prompt',
  summary: 'print the text that teaches an agent the protocol',
  details:
    'Asks the running service, which knows the commands its application adds; without one, reads orc.yaml.',
  arguments: [{ name: 'AGENT' }],
  examples: ['orc agent prompt Worker', 'orc agent prompt Worker >> CLAUDE.md'],
  async run({ words, location, show }) {
    const name = words[0]!
    const asked = await askIfRunning(location, (client) => client.prompt(name))
    const answer = asked ?? (await readPrompt(location, name))
    return show(answer, () => answer.prompt)
  },
}

async function readPrompt(location: TeamLocation, name: string): Promise<AnswerOf<'prompt'>> {
  const config = await loadTeam(location)
  const [{ unknownAgent }, { renderPrompt }, { createTeam }, { createRegistry }, { CONFIDENTIAL_PROMPT }] =
    await Promise.all([
      import('../../commands/identity.ts'),
      import('../../agents/agents.ts'),
      import('../../commands/team.ts'),
      import('../../protocol/registry.ts'),
      import('../../github/team-settings.ts'),
    ])
  const team = createTeam(config)
  const agent = team.resolve(name)
  if (agent === undefined) throw unknownAgent(team, name)
  const notes = team.isConfidential(agent) ? CONFIDENTIAL_PROMPT : []
  return { agent, prompt: renderPrompt(agent, team, createRegistry(), { notes }) }
}
