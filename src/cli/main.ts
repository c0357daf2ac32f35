import { sendCommand } from './connection/send-command.ts'
import type { Program, Verb } from './verb.ts'

type Load = () => Promise<Verb>

const agents = () => import('./commands/agents.ts')
const decisions = () => import('./commands/people/decide.ts')
const help = () => import('./commands/service/help.ts')
const lifecycle = () => import('./commands/service/up.ts')
const messages = () => import('./commands/messages.ts')
const moderation = () => import('./commands/github/moderation.ts')
const rules = () => import('./commands/rules.ts')
const runs = () => import('./commands/runs/runs.ts')
const status = () => import('./commands/service/status.ts')
const tasks = () => import('./commands/tasks/show.ts')
const tokens = () => import('./commands/tokens.ts')
const webhooks = () => import('./commands/webhooks.ts')

/** Every verb that is not a command type, under its primary name. Loaded on use, so that short commands start fast. */
const VERBS: Readonly<Record<string, Load>> = {
  init: async () => (await import('./commands/service/init.ts')).verb,
  up: async () => (await lifecycle()).verb,
  down: async () => (await lifecycle()).down,
  status: async () => (await status()).verb,
  open: async () => (await status()).open,
  send: async () => (await messages()).send,
  inbox: async () => (await import('./commands/people/inbox.ts')).verb,
  approve: async () => (await decisions()).approve,
  reject: async () => (await decisions()).reject,
  ask: async () => (await import('./commands/tasks/ask.ts')).verb,
  run: async () => (await import('./commands/runs/run.ts')).verb,
  logs: async () => (await agents()).logs,
  attach: async () => (await agents()).attach,
  why: async () => (await import('./commands/tasks/why.ts')).verb,

  answer: async () => (await decisions()).answer,
  modify: async () => (await decisions()).modify,
  completion: async () => (await import('./commands/service/completion.ts')).verb,
  help: async () => (await help()).verb,
  version: async () => (await help()).version,

  'agent start': async () => (await agents()).start,
  'agent stop': async () => (await agents()).stop,
  'agent pause': async () => (await agents()).pause,
  'agent resume': async () => (await agents()).resume,
  'agent reset': async () => (await agents()).reset,
  'agent prompt': async () => (await agents()).prompt,

  'audit list': async () => (await import('./commands/audit/list.ts')).verb,
  'audit verify': async () => (await import('./commands/audit/verify.ts')).verb,
  'audit export': async () => (await import('./commands/audit/export.ts')).verb,

  'github status': async () => (await import('./commands/github/status.ts')).verb,
  'github setup': async () => (await import('./commands/github/setup.ts')).verb,
  'github replay': async () => (await import('./commands/github/replay.ts')).verb,
  'github moderation': async () => (await moderation()).verb,
  'github moderate': async () => (await moderation()).decide,

  'message list': async () => (await messages()).list,
  'message show': async () => (await messages()).show,
  'message scan': async () => (await messages()).scan,

  'rules show': async () => (await rules()).show,
  'rules explain': async () => (await rules()).explainRule,
  'rules check': async () => (await rules()).check,

  'run list': async () => (await runs()).list,
  'run show': async () => (await runs()).show,
  'run report': async () => (await runs()).report,
  'run send': async () => (await runs()).send,
  'run cancel': async () => (await runs()).cancel,
  'run propose': async () => (await import('./commands/runs/propose.ts')).verb,

  'service serve': async () => (await import('./commands/service/serve.ts')).verb,
  'service halt': async () => (await agents()).halt,
  'service go': async () => (await agents()).go,
  'service doctor': async () => (await import('./commands/service/doctor.ts')).verb,
  'service demo': async () => (await import('./commands/service/demo.ts')).verb,
  'service play': async () => (await import('./commands/service/play.ts')).verb,
  'service mcp': async () => (await import('./commands/service/mcp.ts')).verb,
  'service hook': async () => (await import('./commands/service/hook.ts')).verb,

  'task list': async () => (await import('./commands/tasks/list.ts')).verb,
  'task show': async () => (await tasks()).verb,
  'task trace': async () => (await import('./commands/tasks/trace.ts')).verb,
  'task take-over': async () => (await tasks()).takeOver,

  'token create': async () => (await tokens()).create,
  'token list': async () => (await tokens()).list,
  'token revoke': async () => (await tokens()).revoke,

  'webhook list': async () => (await webhooks()).list,
  'webhook test': async () => (await webhooks()).test,

  'workspace create': async () => (await import('./commands/workspaces/create.ts')).verb,
  'workspace show': async () => (await import('./commands/workspaces/show.ts')).verb,
  'workspace collect': async () => (await import('./commands/workspaces/collect.ts')).verb,
  'workspace dissolve': async () => (await import('./commands/workspaces/dissolve.ts')).verb,
}

/** Other names for a verb, which behave exactly like it. A bare noun stands for one of its verbs. */
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
  halt: 'service halt',
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
  github: 'health, setup, replay and moderation of the GitHub team',
  message: 'list, show and scan messages',
  rules: 'who may talk to whom, and why',
  run: 'list, show, steer and cancel runs of plans',
  service: 'run, halt and diagnose the service',
  task: 'list, explain and take over tasks',
  token: 'create, list and revoke tokens',
  webhook: 'list and test outgoing webhooks',
  workspace: "create, show, collect and dissolve agents' folders",
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
  // Names of verbs have only letters and dashes: `orc run plan.yaml` needs no list of all commands.
  const mayBeVerb = rest[0] === undefined || /^-|^[a-z-]+$/.test(rest[0])
  if (found?.count !== 2 && Object.hasOwn(NOUNS, first) && (found === undefined || mayBeVerb)) {
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
  const [verb, { runVerb }] = await Promise.all([VERBS[found.name]!(), import('./verb.ts')])
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
    import('./errors.ts'),
    import('../base/suggestion.ts'),
    import('./command-types.ts'),
  ])
  const types = await builtInTypes()
  const known = [
    ...Object.keys(VERBS),
    ...Object.keys(ALIASES),
    ...types.flatMap((type) => [verbOf(type), ...(type.shell === undefined ? [] : [type.shell])]),
  ].filter((name) => !name.startsWith('-'))
  return reportThrown(error, argv, ({ word, among, verbs }) => {
    // `status x` must not suggest `status`.
    const isPair = word.includes(' ')
    return nearest(word, verbs ? [...known, ...among].filter((name) => name.includes(' ') === isPair) : among)
  })
}

const argv = process.argv.slice(2)
// Output is written synchronously, so exiting without draining the event loop loses nothing.
process.exit(await run(argv).catch((error) => fail(error, argv)))
