import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findViolations } from './import-rules.ts'

const src = join(import.meta.dirname, '../src')

function violationsOf(tree: Record<string, string>): string[] {
  return findViolations(new Map(Object.entries(tree)))
}

describe('the source tree', () => {
  it('keeps to the import direction, the contracts of rooms and the other rules of docs/architecture.md', () => {
    const files = globSync('**/*.ts', { cwd: src })
    expect(files.length).toBeGreaterThan(0)
    const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]))
    expect(findViolations(sources)).toEqual([])
  })
})

describe('the import rules', () => {
  it('accept imports to the left, within a room, from the roots, of vocabularies and of types', () => {
    expect(
      violationsOf({
        'base/ids.ts': 'export const a = 1',
        'tasks/task.ts': "import { a } from '../base/ids.ts'\nexport const t = a",
        'store/store.ts': "import { t } from '../tasks/task.ts'\nexport const s = t",
        'audit/chain.ts': "import type { s } from '../store/store.ts'\nexport type c = s",
        'tasks/core/reduce.ts': "import { t } from '../task.ts'\nexport const reduce = t",
        'tasks/tasks.ts': "import { reduce } from './core/reduce.ts'\nexport const tasks = reduce",
        'tasks/api.ts': "import { t } from './task.ts'\nexport const shape = t",
        'tasks/routes.ts':
          "import { answer } from '../api/http-response.ts'\nimport { tasks } from './tasks.ts'\nexport const r = [answer, tasks]",
        'runs/driver.ts': "import { tasks } from '../tasks/tasks.ts'\nexport const d = tasks",
        'api/http-response.ts': 'export const answer = 1',
        'api/contract.ts': "import { shape } from '../tasks/api.ts'\nexport const C = shape",
        'client/client.ts': "import type { C } from '../api/contract.ts'\nexport type D = C",
        'store/sqlite/open.ts': "import { s } from '../store.ts'\nexport const q = s",
        'main.ts': "import { q } from './store/sqlite/open.ts'\nexport const open = q",
        'cli/main.ts': "const { open } = await import('../main.ts')\nopen()",
        'index.ts': "export { a } from './base/ids.ts'",
      }),
    ).toEqual([])
  })

  it.each([
    ['to the right', { 'base/a.ts': "import { b } from '../tasks/tasks.ts'", 'tasks/tasks.ts': 'export {}' }],
    ['beside', { 'rules/a.ts': "import type { b } from '../protocol/b.ts'", 'protocol/b.ts': 'export {}' }],
    [
      'of a multi-line list',
      { 'rules/a.ts': "import {\n  b,\n  c,\n} from '../store/b.ts'", 'store/b.ts': 'export {}' },
    ],
    [
      'that re-export',
      { 'base/a.ts': "export { b } from '../cli/b.ts'\nexport const c = 1", 'cli/b.ts': 'x' },
    ],
    ['for side effects', { 'base/a.ts': "import '../cli/b.ts'", 'cli/b.ts': 'x' }],
    ['at run time', { 'base/a.ts': "const b = await import('../cli/b.ts')", 'cli/b.ts': 'x' }],
    [
      'at run time, two on a line',
      { 'base/a.ts': "[import('./c.ts'), import('../cli/b.ts')]", 'cli/b.ts': 'x', 'base/c.ts': 'x' },
    ],
    ['of the service by the client', { 'client/a.ts': "import '../api/b.ts'", 'api/b.ts': 'x' }],
    [
      'of the configuration by the store',
      { 'store/a.ts': "import '../config/config.ts'", 'config/config.ts': 'x' },
    ],
    ['of main.ts by a room', { 'tasks/a.ts': "import '../main.ts'", 'main.ts': 'x' }],
    ['from a folder not in the table', { 'misc/a.ts': "import '../base/b.ts'", 'base/b.ts': 'x' }],
    ["of another room's inner file", { 'runs/a.ts': "import '../tasks/b.ts'", 'tasks/b.ts': 'x' }],
    ['of an adapter', { 'tasks/a.ts': "import '../store/sqlite/b.ts'", 'store/sqlite/b.ts': 'x' }],
    [
      'of the rest of a room by its core',
      { 'tasks/core/a.ts': "import '../tasks.ts'", 'tasks/tasks.ts': 'x' },
    ],
    ['of the rest of a room by its api.ts', { 'tasks/api.ts': "import './tasks.ts'", 'tasks/tasks.ts': 'x' }],
    ['of routes by a room', { 'tasks/a.ts': "import './routes.ts'", 'tasks/routes.ts': 'x' }],
    [
      "of another room's routes by routes",
      { 'runs/routes.ts': "import '../tasks/routes.ts'", 'tasks/routes.ts': 'x' },
    ],
    [
      'of an inner file of src/api by routes',
      { 'tasks/routes.ts': "import '../api/listen.ts'", 'api/listen.ts': 'x' },
    ],
    ['of a room by a vocabulary', { 'tasks/task.ts': "import '../store/store.ts'", 'store/store.ts': 'x' }],
    ['of files that are not there', { 'base/a.ts': "import './b.ts'" }],
    ['out of src', { 'base/a.ts': "import '../../tests/b.ts'" }],
  ])('refuse imports %s', (_, tree) => {
    const [from, to] = Object.keys(tree)
    const violations = violationsOf(tree)
    expect(violations).toHaveLength(1)
    expect(violations[0]).toMatch(`${from} imports ${to ?? ''}`)
  })

  it('say the file, the import and the rule', () => {
    expect(violationsOf({ 'base/a.ts': "import '../cli/b.ts'", 'cli/b.ts': 'x' })).toEqual([
      'base/a.ts imports cli/b.ts: base may import only: nothing',
    ])
    expect(violationsOf({ 'runs/a.ts': "import '../tasks/b.ts'", 'tasks/b.ts': 'x' })).toEqual([
      'runs/a.ts imports tasks/b.ts: tasks/b.ts is private to tasks; import its contract',
    ])
  })

  it('refuse circles between files, of types too', () => {
    expect(
      violationsOf({
        'base/a.ts': "import type { b } from './b.ts'\nexport const a = 1",
        'base/b.ts': "import { c } from './c.ts'\nexport const b = c",
        'base/c.ts': "import { a } from './a.ts'\nexport const c = a",
      }),
    ).toEqual(['base/a.ts → base/b.ts → base/c.ts → base/a.ts: files import in a circle'])
  })

  it('refuse Node modules in the client, direct and indirect', () => {
    expect(
      violationsOf({
        'client/client.ts': "import { read } from '../base/a.ts'\nexport const client = read",
        'base/a.ts': "import { readFileSync } from 'node:fs'\nexport const read = readFileSync",
      }),
    ).toEqual(['client/client.ts → base/a.ts imports node:fs: must run in a browser'])
  })

  it('refuse default exports and files that only re-export', () => {
    expect(violationsOf({ 'base/a.ts': 'export default 1' })).toEqual(['base/a.ts: no default exports'])
    expect(
      violationsOf({
        'base/all.ts': "/** All. */\nexport * from './a.ts'\nexport type { B } from './b.ts'\n",
        'base/a.ts': 'export const a = 1',
        'base/b.ts': 'export type B = 1',
      }),
    ).toEqual(['base/all.ts: only re-exports; import from the source'])
  })

  it('take no import from a comment', () => {
    expect(violationsOf({ 'base/a.ts': "// import('../cli/b.ts')\n/** import '../cli/b.ts' */\n" })).toEqual(
      [],
    )
  })
})
