import { SHAPES, speak } from './connection/send-command.ts'
import type { Program, Verb } from './verb.ts'

type Load = () => Promise<{ verb: Verb }>

/** Every verb that is not a command type. Loaded when it is used: a short command must start at once. */
const VERBS: Readonly<Record<string, Load>> = {
  init: () => import('./commands/service/init.ts'),
  up: () => import('./commands/service/up.ts'),
  down: () => import('./commands/service/down.ts'),
  serve: () => import('./commands/service/serve.ts'),
  demo: () => import('./commands/service/demo.ts'),
  play: () => import('./commands/service/play.ts'),
  run: () => import('./commands/runs/run.ts'),
  'run show': () => import('./commands/runs/show.ts'),
  'run cancel': () => import('./commands/runs/cancel.ts'),
  'run send': () => import('./commands/runs/send.ts'),
  'run report': () => import('./commands/runs/report.ts'),
  runs: () => import('./commands/runs/list.ts'),
  plan: () => import('./commands/runs/propose.ts'),
  workspace: async () => ({ verb: (await import('./commands/workspaces/show.ts')).bareWorkspace }),
  'workspace create': () => import('./commands/workspaces/create.ts'),
  'workspace show': () => import('./commands/workspaces/show.ts'),
  'workspace collect': () => import('./commands/workspaces/collect.ts'),
  'workspace dissolve': () => import('./commands/workspaces/dissolve.ts'),
  spawn: async () => ({ verb: (await import('./commands/agents/actions.ts')).start }),
  stop: () => import('./commands/agents/stop.ts'),
  go: () => import('./commands/service/go.ts'),
  reset: async () => ({ verb: (await import('./commands/agents/actions.ts')).reset }),
  pause: async () => ({ verb: (await import('./commands/agents/actions.ts')).pause }),
  resume: async () => ({ verb: (await import('./commands/agents/actions.ts')).resume }),
  attach: () => import('./commands/agents/attach.ts'),
  logs: () => import('./commands/agents/logs.ts'),
  open: () => import('./commands/service/open.ts'),
  status: () => import('./commands/service/status.ts'),
  messages: () => import('./commands/messages/list.ts'),
  message: () => import('./commands/messages/show.ts'),
  tasks: () => import('./commands/tasks/list.ts'),
  'task show': () => import('./commands/tasks/show.ts'),
  why: () => import('./commands/tasks/why.ts'),
  trace: () => import('./commands/tasks/trace.ts'),
  ask: () => import('./commands/tasks/ask.ts'),
  send: () => import('./commands/messages/send.ts'),
  'take-over': () => import('./commands/tasks/take-over.ts'),
  inbox: () => import('./commands/people/inbox.ts'),
  approve: async () => ({ verb: (await import('./commands/people/decide.ts')).approve }),
  reject: async () => ({ verb: (await import('./commands/people/decide.ts')).reject }),
  modify: async () => ({ verb: (await import('./commands/people/decide.ts')).modify }),
  answer: () => import('./commands/people/answer.ts'),
  audit: () => import('./commands/audit/list.ts'),
  'audit verify': () => import('./commands/audit/verify.ts'),
  'audit export': () => import('./commands/audit/export.ts'),
  rules: () => import('./commands/rules/show.ts'),
  'rules explain': () => import('./commands/rules/explain.ts'),
  'rules check': () => import('./commands/rules/check.ts'),
  github: () => import('./commands/github/status.ts'),
  'github setup': () => import('./commands/github/setup.ts'),
  'github replay': () => import('./commands/github/replay.ts'),
  moderation: () => import('./commands/github/moderation.ts'),
  'moderation decide': async () => ({ verb: (await import('./commands/github/moderation.ts')).decide }),
  webhooks: () => import('./commands/webhooks/list.ts'),
  'webhooks test': () => import('./commands/webhooks/test.ts'),
  token: () => import('./commands/tokens/create.ts'),
  'token list': () => import('./commands/tokens/list.ts'),
  'token revoke': () => import('./commands/tokens/revoke.ts'),
  prompt: () => import('./commands/agents/prompt.ts'),
  scan: () => import('./commands/messages/scan.ts'),
  doctor: () => import('./commands/service/doctor.ts'),
  completion: () => import('./commands/service/completion.ts'),
  mcp: () => import('./commands/service/mcp.ts'),
  hook: () => import('./commands/service/hook.ts'),
  help: () => import('./commands/service/help.ts'),
  version: () => import('./commands/service/version.ts'),
}

const SAME = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
  ['-V', 'version'],
  ['ask-user', 'request-user-input'],
])

async function run(argv: readonly string[]): Promise<number> {
  const [first = 'help', ...rest] = verbFirst(argv)
  const below = `${first} ${rest[0]}`
  const isBelow = Object.hasOwn(VERBS, below)
  const name = isBelow ? below : (SAME.get(first) ?? first)
  if (!Object.hasOwn(VERBS, name) || isCommandAnswer(name, rest)) return await speak(name, rest)
  // Beside the commands the one thing that is run so often that it reads no tables.
  if (name === 'hook' && !rest.some((word) => word === '--help' || word === '-h')) {
    return await (await import('./commands/service/hook.ts')).postHook(rest)
  }
  const [{ verb }, { runVerb }] = await Promise.all([VERBS[name]!(), import('./run-verb.ts')])
  return await runVerb(verb, isBelow ? rest.slice(1) : rest, PROGRAM)
}

/** With the parameters of the command, `orc answer` is the command, like every other in the shell form (S1.17). */
function isCommandAnswer(name: string, words: readonly string[]): boolean {
  return name === 'answer' && words.some((word) => /^--(in[-_]response[-_]to|to)(=|$)/i.test(word))
}

/** `orc --json status` is as good as `orc status --json`. */
function verbFirst(argv: readonly string[]): readonly string[] {
  const count = argv[0] === '--config' ? 2 : argv[0] === '--json' || argv[0]?.startsWith('--config=') ? 1 : 0
  if (count === 0 || argv.length <= count) return argv
  const [verb, ...rest] = verbFirst(argv.slice(count))
  return [verb!, ...argv.slice(0, count), ...rest]
}

const PROGRAM: Program = {
  async verbs(prefix = '') {
    const names = Object.keys(VERBS).filter((name) => name.startsWith(prefix))
    const loaded = await Promise.all(names.map((name) => VERBS[name]!()))
    return loaded.map(({ verb }) => verb)
  },
  version: async () => (await import('../version.ts')).VERSION,
}

async function fail(error: unknown, argv: readonly string[]): Promise<number> {
  const [{ reportThrown }, { nearest }] = await Promise.all([
    import('./print-error.ts'),
    import('../document/suggestion.ts'),
  ])
  const known = [...Object.keys(VERBS), ...Object.keys(SHAPES).map((type) => type.replaceAll('_', '-'))]
  return reportThrown(error, argv, ({ word, among, verbs }) => {
    if (!verbs) return nearest(word, among)
    // `orc task task_7`: the first word of a verb of two.
    return known.find((name) => name.startsWith(`${word} `)) ?? nearest(word, [...known, ...among])
  })
}

const argv = process.argv.slice(2)
// All output is written by now, so that nothing is lost by not waiting for the event loop.
process.exit(await run(argv).catch((error) => fail(error, argv)))
