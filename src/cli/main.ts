import { sendCommand } from './connection/send-command.ts'
import type { Program, Verb } from './verb.ts'

type Load = () => Promise<Verb>

const agentActions = () => import('./commands/agents/actions.ts')
const decisions = () => import('./commands/people/decide.ts')
const moderation = () => import('./commands/github/moderation.ts')
const workspaces = () => import('./commands/workspaces/show.ts')
const stopping = () => import('./commands/agents/stop.ts')

/** Every verb that is not a command type, under its primary name. Loaded on use, so that short commands start fast. */
const VERBS: Readonly<Record<string, Load>> = {
  init: async () => (await import('./commands/service/init.ts')).verb,
  up: async () => (await import('./commands/service/up.ts')).verb,
  down: async () => (await import('./commands/service/down.ts')).verb,
  status: async () => (await import('./commands/service/status.ts')).verb,
  open: async () => (await import('./commands/service/open.ts')).verb,
  send: async () => (await import('./commands/messages/send.ts')).verb,
  inbox: async () => (await import('./commands/people/inbox.ts')).verb,
  approve: async () => (await decisions()).approve,
  reject: async () => (await decisions()).reject,
  ask: async () => (await import('./commands/tasks/ask.ts')).verb,
  run: async () => (await import('./commands/runs/run.ts')).verb,
  logs: async () => (await import('./commands/agents/logs.ts')).verb,
  attach: async () => (await import('./commands/agents/attach.ts')).verb,
  why: async () => (await import('./commands/tasks/why.ts')).verb,

  answer: async () => (await import('./commands/people/answer.ts')).verb,
  modify: async () => (await decisions()).modify,
  completion: async () => (await import('./commands/service/completion.ts')).verb,
  help: async () => (await import('./commands/service/help.ts')).verb,
  version: async () => (await import('./commands/service/version.ts')).verb,

  'agent start': async () => (await agentActions()).start,
  'agent stop': async () => (await stopping()).verb,
  'agent pause': async () => (await agentActions()).pause,
  'agent resume': async () => (await agentActions()).resume,
  'agent reset': async () => (await agentActions()).reset,
  'agent prompt': async () => (await import('./commands/agents/prompt.ts')).verb,

  'audit list': async () => (await import('./commands/audit/list.ts')).verb,
  'audit verify': async () => (await import('./commands/audit/verify.ts')).verb,
  'audit export': async () => (await import('./commands/audit/export.ts')).verb,

  'github status': async () => (await import('./commands/github/status.ts')).verb,
  'github setup': async () => (await import('./commands/github/setup.ts')).verb,
  'github replay': async () => (await import('./commands/github/replay.ts')).verb,
  'github moderation': async () => (await moderation()).verb,
  'github moderate': async () => (await moderation()).decide,

  'message list': async () => (await import('./commands/messages/list.ts')).verb,
  'message show': async () => (await import('./commands/messages/show.ts')).verb,
  'message scan': async () => (await import('./commands/messages/scan.ts')).verb,

  'rules show': async () => (await import('./commands/rules/show.ts')).verb,
  'rules explain': async () => (await import('./commands/rules/explain.ts')).verb,
  'rules check': async () => (await import('./commands/rules/check.ts')).verb,

  'run list': async () => (await import('./commands/runs/list.ts')).verb,
  'run show': async () => (await import('./commands/runs/show.ts')).verb,
  'run report': async () => (await import('./commands/runs/report.ts')).verb,
  'run send': async () => (await import('./commands/runs/send.ts')).verb,
  'run cancel': async () => (await import('./commands/runs/cancel.ts')).verb,
  'run propose': async () => (await import('./commands/runs/propose.ts')).verb,

  'service serve': async () => (await import('./commands/service/serve.ts')).verb,
  'service halt': async () => (await stopping()).halt,
  'service go': async () => (await import('./commands/service/go.ts')).verb,
  'service doctor': async () => (await import('./commands/service/doctor.ts')).verb,
  'service demo': async () => (await import('./commands/service/demo.ts')).verb,
  'service play': async () => (await import('./commands/service/play.ts')).verb,
  'service mcp': async () => (await import('./commands/service/mcp.ts')).verb,
  'service hook': async () => (await import('./commands/service/hook.ts')).verb,

  'task list': async () => (await import('./commands/tasks/list.ts')).verb,
  'task show': async () => (await import('./commands/tasks/show.ts')).verb,
  'task trace': async () => (await import('./commands/tasks/trace.ts')).verb,
  'task take-over': async () => (await import('./commands/tasks/take-over.ts')).verb,

  'token create': async () => (await import('./commands/tokens/create.ts')).verb,
  'token list': async () => (await import('./commands/tokens/list.ts')).verb,
  'token revoke': async () => (await import('./commands/tokens/revoke.ts')).verb,

  'webhook list': async () => (await import('./commands/webhooks/list.ts')).verb,
  'webhook test': async () => (await import('./commands/webhooks/test.ts')).verb,

  'workspace create': async () => (await import('./commands/workspaces/create.ts')).verb,
  'workspace show': async () => (await workspaces()).verb,
  'workspace collect': async () => (await import('./commands/workspaces/collect.ts')).verb,
  'workspace dissolve': async () => (await import('./commands/workspaces/dissolve.ts')).verb,
}

/** Other names for a verb, which behave exactly like it. A bare noun is the former name of one of its verbs. */
const ALIASES: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
  '-V': 'version',
  'agent attach': 'attach',
  'agent logs': 'logs',
  'message send': 'send',
  'run start': 'run',
  'service init': 'init',
  'service up': 'up',
  'service down': 'down',
  'service status': 'status',
  'service open': 'open',
  'task ask': 'ask',
  'task why': 'why',
  audit: 'audit list',
  demo: 'service demo',
  doctor: 'service doctor',
  github: 'github status',
  go: 'service go',
  hook: 'service hook',
  mcp: 'service mcp',
  message: 'message show',
  messages: 'message list',
  moderation: 'github moderation',
  'moderation decide': 'github moderate',
  pause: 'agent pause',
  plan: 'run propose',
  play: 'service play',
  prompt: 'agent prompt',
  reset: 'agent reset',
  resume: 'agent resume',
  rules: 'rules show',
  runs: 'run list',
  scan: 'message scan',
  serve: 'service serve',
  spawn: 'agent start',
  stop: 'agent stop',
  'take-over': 'task take-over',
  tasks: 'task list',
  token: 'token create',
  trace: 'task trace',
  webhooks: 'webhook list',
  'webhooks test': 'webhook test',
  workspace: 'workspace show',
}

const NOUNS: Readonly<Record<string, string>> = {
  agent: 'start, stop and pause agents',
  audit: 'read, verify and export the audit log',
  github: 'the GitHub team: health, setup, replay, moderation',
  message: 'messages and mailboxes',
  rules: 'who may talk to whom, and why',
  run: 'runs of plans',
  service: 'the service itself: serve, halt, diagnose',
  task: 'delegated tasks',
  token: 'tokens of agents and people',
  webhook: 'outgoing webhooks',
  workspace: "agents' folders; needs no service",
}

/** Nouns whose bare form needs an argument (`orc run PLAN`); without one, list the noun's verbs. */
const NEEDS_ARGUMENT: ReadonlySet<string> = new Set(['message', 'run', 'token'])

/** The verb that the first words name, and how many words the name takes. */
function resolve(first: string, second: string | undefined): { name: string; count: number } | undefined {
  for (const [typed, count] of [[`${first} ${second}`, 2] as const, [first, 1] as const]) {
    if (Object.hasOwn(VERBS, typed)) return { name: typed, count }
    if (Object.hasOwn(ALIASES, typed)) return { name: ALIASES[typed]!, count }
  }
  return undefined
}

async function run(argv: readonly string[]): Promise<number> {
  const [typed, ...rest] = verbFirst(argv)
  if (typed === undefined) return await (await import('./commands/service/help.ts')).showShortHelp(PROGRAM)
  const first = typed === 'ask-user' ? 'request-user-input' : typed
  const found = resolve(first, rest[0])
  if (found?.count !== 2 && Object.hasOwn(NOUNS, first)) {
    const { findCommandOfNoun, showNoun } = await import('./commands/service/help.ts')
    const type = await findCommandOfNoun(first, rest[0])
    if (type !== undefined) return await sendCommand(type, rest.slice(1))
    if (found === undefined || (rest.length === 0 && NEEDS_ARGUMENT.has(first)))
      return await showNoun(first, rest, PROGRAM)
  }
  if (found === undefined || isCommandAnswer(found.name, rest)) return await sendCommand(first, rest)
  const words = rest.slice(found.count - 1)
  // A hook runs at every step of an agent, so it skips the tables that other verbs read.
  if (found.name === 'service hook' && !words.some((word) => word === '--help' || word === '-h')) {
    return await (await import('./commands/service/hook.ts')).postHook(words)
  }
  const [verb, { runVerb }] = await Promise.all([VERBS[found.name]!(), import('./run-verb.ts')])
  return await runVerb(verb, words, PROGRAM)
}

/** With the fields of the answer command, `orc answer` sends that command, like every other shell form (S1.17). */
function isCommandAnswer(name: string, words: readonly string[]): boolean {
  return name === 'answer' && words.some((word) => /^--(in[-_]response[-_]to|to)(=|$)/i.test(word))
}

/** `orc --json status` means `orc status --json`. */
function verbFirst(argv: readonly string[]): readonly string[] {
  const count = argv[0] === '--config' ? 2 : argv[0] === '--json' || argv[0]?.startsWith('--config=') ? 1 : 0
  if (count === 0 || argv.length <= count) return argv
  const [verb, ...rest] = verbFirst(argv.slice(count))
  const isPair = rest[0] !== undefined && resolve(verb!, rest[0])?.count === 2
  return isPair
    ? [verb!, rest[0]!, ...argv.slice(0, count), ...rest.slice(1)]
    : [verb!, ...argv.slice(0, count), ...rest]
}

const PROGRAM: Program = {
  async verbs(prefix = '') {
    const names = Object.keys(VERBS).filter((name) => name.startsWith(prefix))
    return await Promise.all(names.map((name) => VERBS[name]!()))
  },
  nouns: NOUNS,
  aliases: ALIASES,
  async find(words) {
    const found = words[0] === undefined ? undefined : resolve(words[0], words[1])
    return found === undefined || found.count < words.length ? undefined : await VERBS[found.name]!()
  },
  version: async () => (await import('../base/version.ts')).VERSION,
}

async function fail(error: unknown, argv: readonly string[]): Promise<number> {
  const [{ reportThrown }, { nearest }, { builtInTypes, verbOf }] = await Promise.all([
    import('./print-error.ts'),
    import('../base/suggestion.ts'),
    import('./command-types.ts'),
  ])
  const types = await builtInTypes()
  const known = [
    ...Object.keys(VERBS),
    ...Object.keys(ALIASES),
    ...types.flatMap((type) => [verbOf(type), ...(type.shell === undefined ? [] : [type.shell])]),
  ].filter((name) => !name.startsWith('-'))
  return reportThrown(error, argv, ({ word, among, verbs }) =>
    nearest(word, verbs ? [...known, ...among] : among),
  )
}

const argv = process.argv.slice(2)
// Output is written synchronously, so exiting without draining the event loop loses nothing.
process.exit(await run(argv).catch((error) => fail(error, argv)))
