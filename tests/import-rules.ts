/** Reads the imports of a source tree and says where they break the layout of docs/architecture.md. Pure. */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'

/** Path below src/ → source text. */
export type Sources = ReadonlyMap<string, string>

/**
 * Left to right: a room may import the rooms of the rows before its own, by their contract files. `wire` stands for
 * the `api.ts` of every room, `api` for the HTTP routes of every room as well as for src/api.
 */
const ROWS = [
  ['base'],
  ['yaml', 'protocol', 'rules', 'llm'],
  ['wire'],
  ['config', 'store'],
  ['audit'],
  ['programs', 'runtimes', 'workspaces'],
  ['commands'],
  ['people'],
  ['messages'],
  ['delivery'],
  ['agents'],
  ['tasks'],
  ['runs', 'github'],
  ['halt', 'webhooks'],
  ['engine'],
  ['api'],
  ['client'],
  ['main'],
  ['cli'],
  ['index'],
]

/** Rooms whose list is shorter than "all rows before mine". A path names one file. */
const INSTEAD: Record<string, readonly string[]> = {
  config: ['base', 'yaml', 'rules', 'llm'],
  store: ['base'],
  // The two axes, where an agent runs and which program it is, know each other by their contracts only.
  programs: ['base', 'protocol', 'runtimes/runtime.ts'],
  runtimes: [
    'base',
    'protocol',
    'llm',
    'programs/program.ts',
    'programs/executable.ts',
    'programs/line-splitter.ts',
  ],
  llm: ['base'],
  workspaces: ['base'],
  // Runs in a browser: it knows the service by the table of its routes only.
  client: ['base', 'protocol', 'api/contract.ts'],
}

/** Types and constants of a feature, which import nothing but base and each other: every room may import them. */
const VOCABULARY = [
  'audit/entry.ts',
  'github/team-settings.ts',
  'messages/message.ts',
  'people/human-request.ts',
  'rules/rule.ts',
  'runs/plan.ts',
  'runs/run.ts',
  'tasks/task.ts',
]

/** The contract of a room: the only files that other rooms may import. Rooms that aren't listed have `<room>.ts`. */
const CONTRACTS: Record<string, readonly string[]> = {
  // Rooms without a feature: every file that lies directly in them.
  base: ['*'],
  yaml: ['*'],
  protocol: ['*'],
  rules: ['*'],
  store: ['*'],
  audit: ['*'],
  llm: ['*'],
  client: ['*'],
  commands: [
    'commands.ts',
    'handle.ts',
    'identity.ts',
    'tokens.ts',
    'team.ts',
    'idempotency.ts',
    'rate-limits.ts',
    'halt-state.ts',
  ],
  people: ['people.ts', 'verdicts.ts', 'hold-command.ts', 'permission-dialogs.ts'],
  messages: ['messages.ts', 'mailboxes.ts', 'delivery-states.ts', 'conversations.ts'],
  delivery: ['agent-delivery.ts', 'listener.ts', 'interrupts.ts'],
  programs: ['program.ts', 'executable.ts', 'line-splitter.ts'],
  // How an agent is run; and, for commands and checks: their processes, environment and scripted answers.
  runtimes: ['runtime.ts', 'processes.ts', 'environment.ts', 'script.ts'],
  agents: ['agents.ts', 'sessions.ts', 'usage-and-limits.ts'],
  workspaces: [
    'workspaces.ts',
    'outbox.ts',
    'status.ts',
    'queue.ts',
    'worktree/worktree.ts',
    'dissolve.ts',
    'survey.ts',
  ],
  // Reading, checking and drawing plan.yaml, finding processes and reading stored runs also work without a service.
  runs: ['runs.ts', 'plan/read-plan.ts', 'plan/draw-graph.ts', 'process-marks.ts', 'read-runs-offline.ts'],
  // The preview of an event and the check of the setup also work without a service.
  github: ['github.ts', 'preview.ts', 'setup.ts'],
  // The table of routes for clients; and, for the routes of every room: a request, its response and its streams.
  api: [
    'contract.ts',
    'handle-request.ts',
    'request-input.ts',
    'http-response.ts',
    'sse.ts',
    'audit-feed.ts',
    'stream-feed.ts',
  ],
  tasks: ['tasks.ts', 'validation/checks.ts', 'validation/judge.ts'],
}

/** Composition roots: they alone name concrete adapters, so every file is open to them. */
const ROOTS = ['main.ts', 'engine.ts', 'cli/main.ts', 'index.ts']

/** Layers that must load in a browser, with all they import. */
const BROWSER = ['client']

const BARREL = 'index.ts'

type Import = { specifier: string; typeOnly: boolean }

/** Relies on the formatter: a statement begins its line. */
function readImports(source: string): Import[] {
  const found: Import[] = []
  const statement = /^(?:import|export)\s+(type\s)?(?:[^'"`;()=]*?\sfrom\s*)?['"]([^'"]+)['"]/gm
  for (const [, type, specifier] of source.matchAll(statement)) {
    found.push({ specifier: specifier!, typeOnly: type !== undefined })
  }
  const uncommented = source.replace(/^\s*(?:\/\/|\/?\*).*$/gm, '')
  for (const [, specifier] of uncommented.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)) {
    found.push({ specifier: specifier!, typeOnly: false })
  }
  return found
}

const roomOf = (file: string) => file.split(/[/.]/)[0]!

/** Routes belong to the API, and what they say on the wire to a row of its own, whichever room they lie in. */
function layerOf(file: string): string {
  const room = roomOf(file)
  const inner = file.slice(room.length + 1)
  if (room !== 'api' && /^routes(?:\.ts$|\/)/.test(inner)) return 'api'
  if (/^api(?:\.ts$|\/)/.test(inner)) return 'wire'
  return room
}

function isContract(file: string): boolean {
  const room = roomOf(file)
  const inner = file.slice(room.length + 1)
  if (VOCABULARY.includes(file) || inner === 'ts') return true
  const contract = CONTRACTS[room] ?? [`${room}.ts`]
  return contract.includes(inner) || (contract.includes('*') && !inner.includes('/'))
}

function brokenRule(from: string, to: string): string | undefined {
  if (ROOTS.includes(from)) return undefined
  const [layer, target] = [layerOf(from), layerOf(to)]
  const row = ROWS.findIndex((rooms) => rooms.includes(layer))
  if (row < 0) return `${layer} is not in the table of rooms (tests/import-rules.ts)`
  if (VOCABULARY.includes(from) && target !== 'base' && !VOCABULARY.includes(to)) {
    return 'a vocabulary imports nothing but base'
  }
  if (VOCABULARY.includes(to)) return undefined
  if (/^\w+\/core\//.test(from) && target !== 'base' && !to.startsWith(`${roomOf(from)}/core/`)) {
    return `${roomOf(from)}/core may import only: base, vocabularies and itself`
  }
  const allowed = INSTEAD[layer] ?? ROWS.slice(0, row).flat()
  if (
    target !== layer &&
    roomOf(to) !== roomOf(from) &&
    !allowed.some((one) => to === one || target === one)
  ) {
    return `${layer} may import only: ${allowed.join(', ') || 'nothing'}`
  }
  if (target !== layer && roomOf(to) === roomOf(from) && (target === 'api' || layer === 'wire')) {
    return layer === 'wire'
      ? 'api.ts may import only: base, protocol and vocabularies'
      : 'only src/api imports routes'
  }
  // src/api serves the routes of every room, and a room's `api.ts` is open to everyone.
  const isOpen = target === 'wire' || (target === 'api' && roomOf(from) === 'api')
  if (roomOf(to) !== roomOf(from) && !isOpen && !isContract(to)) {
    return `${to} is private to ${roomOf(to)}; import its contract`
  }
  return undefined
}

export function findViolations(sources: Sources): string[] {
  const imports = new Map([...sources].map(([file, source]) => [file, readImports(source)]))
  const targets = (file: string, only: (found: Import) => boolean = () => true) =>
    imports
      .get(file)!
      .filter(({ specifier }) => specifier.startsWith('.'))
      .filter(only)
      .map(({ specifier }) => posix.join(posix.dirname(file), specifier))
  const violations: string[] = []

  for (const [file, source] of sources) {
    for (const to of targets(file)) {
      const broken = sources.has(to) ? brokenRule(file, to) : 'no such file in src/'
      if (broken) violations.push(`${file} imports ${to}: ${broken}`)
    }
    if (/^export default\b/m.test(source)) violations.push(`${file}: no default exports`)
    if (file !== BARREL && isBarrel(source))
      violations.push(`${file}: only re-exports; import from the source`)
  }
  violations.push(...findCycles([...sources.keys()], (file) => targets(file)))
  violations.push(...findBrowserLeaks(sources, imports, targets))
  return violations
}

function isBarrel(source: string): boolean {
  const code = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  const rest = code.replace(
    /^export\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*['"][^'"]+['"];?/gm,
    '',
  )
  return code.trim() !== '' && rest.trim() === ''
}

function findCycles(files: string[], targets: (file: string) => string[]): string[] {
  const cycles: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (file: string, path: string[]) => {
    if (state.get(file) === 'done' || !files.includes(file)) return
    if (state.get(file) === 'open') {
      cycles.push(`${[...path.slice(path.indexOf(file)), file].join(' → ')}: files import in a circle`)
      return
    }
    state.set(file, 'open')
    for (const to of targets(file)) visit(to, [...path, file])
    state.set(file, 'done')
  }
  for (const file of files) visit(file, [])
  return cycles
}

/** Types vanish; every other import of a browser layer is loaded there, through any number of files. */
function findBrowserLeaks(
  sources: Sources,
  imports: ReadonlyMap<string, Import[]>,
  targets: (file: string, only: (found: Import) => boolean) => string[],
): string[] {
  const leaks: string[] = []
  const seen = new Set<string>()
  const visit = (file: string, path: string[]) => {
    if (seen.has(file) || !sources.has(file)) return
    seen.add(file)
    for (const { specifier, typeOnly } of imports.get(file)!) {
      if (!typeOnly && isBuiltin(specifier)) {
        leaks.push(`${[...path, file].join(' → ')} imports ${specifier}: must run in a browser`)
      }
    }
    for (const to of targets(file, ({ typeOnly }) => !typeOnly)) visit(to, [...path, file])
  }
  for (const file of sources.keys())
    if (BROWSER.includes(layerOf(file)) || layerOf(file) === 'wire') visit(file, [])
  return leaks
}
