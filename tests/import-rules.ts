/** Reads the imports of a source tree and says where they break the layout of docs/architecture.md. Pure. */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'

/** Path below src/ → source text. */
export type Sources = ReadonlyMap<string, string>

/** Left to right: a layer may import every layer before its own row; never one beside it or after it. */
const ROWS = [
  ['model', 'document'],
  ['wire', 'rules', 'tasks', 'runs'],
  ['store', 'programs', 'models', 'runtimes', 'workspaces', 'github'],
  ['audit'],
  ['config'],
  ['engine'],
  ['service'],
  ['client'],
  ['main'],
  ['cli'],
  ['index'],
]

/** Where a layer's list is not simply "all rows before mine". A path names one file. */
const INSTEAD: Record<string, readonly string[]> = {
  config: ['model', 'document', 'rules'],
  // The two axes, where an agent runs and which program it is, know each other by their contracts only.
  programs: ['model', 'wire', 'runtimes/runtime.ts'],
  // Where a program's executable is, is asked by both in the same words.
  runtimes: [
    'model',
    'wire',
    'programs/program.ts',
    'programs/executable.ts',
    'programs/line-splitter.ts',
    'models/model.ts',
  ],
  // What a model is asked knows nothing of how it was said.
  models: ['model'],
  // A folder on disk knows nothing of plans and tasks.
  workspaces: ['model'],
  // Runs in a browser: it knows the service by its contract only.
  client: ['model', 'service/contract.ts'],
}

/** Layers that are one file, `config.ts`; a folder of that name is private to it. */
const FILES = ['config', 'main', 'index']

/** Composition roots: they alone name concrete adapters, so every folder is open to them. */
const ROOTS = ['main.ts', 'cli/main.ts']

/** Subfolders that belong to their parent's contract, for its other subfolders to share. */
const SHARED = [
  'store/schema',
  'workspaces/safe-fs',
  'workspaces/worktree',
  'workspaces/dissolve',
  'cli/connection',
  'cli/output',
]

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

const layerOf = (file: string) => file.split(/[/.]/)[0]!

function mayImport(layer: string): readonly string[] | undefined {
  const row = ROWS.findIndex((names) => names.includes(layer))
  return row < 0 ? undefined : (INSTEAD[layer] ?? ROWS.slice(0, row).flat())
}

/** Files directly in a folder are its contract; its subfolders are private to it. Siblings never meet. */
function ownerOf(to: string): string | undefined {
  const folder = posix.dirname(to)
  if (FILES.includes(folder)) return `${folder}.ts`
  return folder.includes('/') && !SHARED.includes(folder) ? posix.dirname(folder) : undefined
}

function brokenRule(from: string, to: string): string | undefined {
  if (ROOTS.includes(from)) return undefined
  const layer = layerOf(from)
  const allowed = mayImport(layer)
  if (!allowed) return `${layer} is not in the table of layers (tests/import-rules.ts)`
  if (layerOf(to) !== layer && !allowed.some((place) => to === place || layerOf(to) === place)) {
    return `${layer} may import only: ${allowed.join(', ') || 'nothing'}`
  }
  const owner = ownerOf(to)
  const isInside = from.startsWith(`${posix.dirname(to)}/`)
  if (!owner || isInside || from === owner || posix.dirname(from) === owner) return undefined
  return `${posix.dirname(to)} is private to ${owner}`
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
  for (const file of sources.keys()) if (BROWSER.includes(layerOf(file))) visit(file, [])
  return leaks
}
