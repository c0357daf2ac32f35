import { SHAPES, speak } from './speak.ts'
import type { Program, Verb } from './verb.ts'

type Load = () => Promise<{ verb: Verb }>

/** Every verb that is not a command type. Loaded when it is used: a short command must start at once. */
const VERBS: Readonly<Record<string, Load>> = {
  init: () => import('./commands/init.ts'),
  up: () => import('./commands/up.ts'),
  down: () => import('./commands/down.ts'),
  serve: () => import('./commands/serve.ts'),
  demo: () => import('./commands/demo.ts'),
  play: () => import('./commands/play.ts'),
  run: () => import('./commands/run.ts'),
  'run show': () => import('./commands/run-show.ts'),
  'run cancel': () => import('./commands/run-cancel.ts'),
  'run send': () => import('./commands/run-send.ts'),
  'run report': () => import('./commands/run-report.ts'),
  runs: () => import('./commands/runs.ts'),
  plan: () => import('./commands/plan.ts'),
  workspace: () => import('./commands/workspace.ts'),
  'workspace create': () => import('./commands/workspace-create.ts'),
  'workspace show': () => import('./commands/workspace-show.ts'),
  'workspace collect': () => import('./commands/workspace-collect.ts'),
  'workspace dissolve': () => import('./commands/workspace-dissolve.ts'),
  spawn: () => import('./commands/spawn.ts'),
  stop: () => import('./commands/stop.ts'),
  go: () => import('./commands/go.ts'),
  reset: () => import('./commands/reset.ts'),
  pause: () => import('./commands/pause.ts'),
  resume: () => import('./commands/resume.ts'),
  attach: () => import('./commands/attach.ts'),
  logs: () => import('./commands/logs.ts'),
  open: () => import('./commands/open.ts'),
  status: () => import('./commands/status.ts'),
  messages: () => import('./commands/messages.ts'),
  message: () => import('./commands/message.ts'),
  tasks: () => import('./commands/tasks.ts'),
  'task show': () => import('./commands/task-show.ts'),
  why: () => import('./commands/why.ts'),
  trace: () => import('./commands/trace.ts'),
  ask: () => import('./commands/ask.ts'),
  send: () => import('./commands/send.ts'),
  'take-over': () => import('./commands/take-over.ts'),
  inbox: () => import('./commands/inbox.ts'),
  approve: () => import('./commands/approve.ts'),
  reject: () => import('./commands/reject.ts'),
  modify: () => import('./commands/modify.ts'),
  answer: () => import('./commands/answer.ts'),
  audit: () => import('./commands/audit.ts'),
  'audit verify': () => import('./commands/audit-verify.ts'),
  'audit export': () => import('./commands/audit-export.ts'),
  rules: () => import('./commands/rules.ts'),
  'rules explain': () => import('./commands/rules-explain.ts'),
  'rules check': () => import('./commands/rules-check.ts'),
  github: () => import('./commands/github.ts'),
  'github setup': () => import('./commands/github-setup.ts'),
  'github replay': () => import('./commands/github-replay.ts'),
  moderation: () => import('./commands/moderation.ts'),
  'moderation decide': () => import('./commands/moderation-decide.ts'),
  webhooks: () => import('./commands/webhooks.ts'),
  'webhooks test': () => import('./commands/webhooks-test.ts'),
  token: () => import('./commands/token.ts'),
  'token list': () => import('./commands/token-list.ts'),
  'token revoke': () => import('./commands/token-revoke.ts'),
  prompt: () => import('./commands/prompt.ts'),
  scan: () => import('./commands/scan.ts'),
  doctor: () => import('./commands/doctor.ts'),
  completion: () => import('./commands/completion.ts'),
  mcp: () => import('./commands/mcp.ts'),
  hook: () => import('./commands/hook.ts'),
  help: () => import('./commands/help.ts'),
  version: () => import('./commands/version.ts'),
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
    return await (await import('./commands/hook.ts')).postHook(rest)
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
    import('./report.ts'),
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
