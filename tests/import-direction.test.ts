import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findViolations } from './import-rules.ts'

const src = join(import.meta.dirname, '../src')

function violationsOf(tree: Record<string, string>): string[] {
  return findViolations(new Map(Object.entries(tree)))
}

describe('the source tree', () => {
  it('keeps to the import direction, the privacy of folders and the other rules of docs/architecture.md', () => {
    const files = globSync('**/*.ts', { cwd: src })
    expect(files.length).toBeGreaterThan(0)
    const sources = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]))
    expect(findViolations(sources)).toEqual([])
  })
})

describe('the import rules', () => {
  it('accept imports to the left, within a folder, from the roots and of types', () => {
    expect(
      violationsOf({
        'model/message.ts': 'export const a = 1',
        'store/store.ts': "import { a } from '../model/message.ts'\nexport const s = a",
        'audit/chain.ts': "import type { s } from '../store/store.ts'\nexport type c = s",
        'config/schema.ts': "import { a } from '../model/message.ts'\nexport const y = a",
        'config.ts': "import { y } from './config/schema.ts'\nexport const config = y",
        'engine/handle.ts': "import { config } from '../config.ts'\nexport const handle = config",
        'store/schema/tables.ts': 'export const t = 1',
        'store/sqlite/sqlite.ts':
          "import { s } from '../store.ts'\nimport { t } from '../schema/tables.ts'\nexport const q = [s, t]",
        'service/contract.ts': "import type { x } from 'node:http'\nexport type C = x",
        'client/client.ts': "import type { C } from '../service/contract.ts'\nexport type D = C",
        'main.ts': "import { q } from './store/sqlite/sqlite.ts'\nexport const open = q",
        'cli/main.ts': "const { open } = await import('../main.ts')\nopen()",
        'index.ts': "export { a } from './model/message.ts'",
      }),
    ).toEqual([])
  })

  it.each([
    [
      'to the right',
      { 'model/a.ts': "import { b } from '../engine/b.ts'", 'engine/b.ts': 'export const b = 1' },
    ],
    ['beside', { 'wire/a.ts': "import type { b } from '../rules/b.ts'", 'rules/b.ts': 'export type b = 1' }],
    [
      'of a multi-line list',
      { 'rules/a.ts': "import {\n  b,\n  c,\n} from '../store/b.ts'", 'store/b.ts': 'export {}' },
    ],
    [
      'that re-export',
      { 'model/a.ts': "export { b } from '../cli/b.ts'\nexport const c = 1", 'cli/b.ts': 'x' },
    ],
    ['for side effects', { 'model/a.ts': "import '../cli/b.ts'", 'cli/b.ts': 'x' }],
    ['at run time', { 'model/a.ts': "const b = await import('../cli/b.ts')", 'cli/b.ts': 'x' }],
    [
      'at run time, two on a line',
      { 'model/a.ts': "[import('./c.ts'), import('../cli/b.ts')]", 'cli/b.ts': 'x', 'model/c.ts': 'x' },
    ],
    ['of the service by the client', { 'client/a.ts': "import '../service/b.ts'", 'service/b.ts': 'x' }],
    ['of the configuration by the store', { 'store/a.ts': "import '../config.ts'", 'config.ts': 'x' }],
    ['of main.ts by the engine', { 'engine/a.ts': "import '../main.ts'", 'main.ts': 'x' }],
    ['from a folder not in the table', { 'misc/a.ts': "import '../model/b.ts'", 'model/b.ts': 'x' }],
    ['of a private folder', { 'engine/a.ts': "import '../store/sqlite/b.ts'", 'store/sqlite/b.ts': 'x' }],
    ['of the folder of config.ts', { 'engine/a.ts': "import '../config/b.ts'", 'config/b.ts': 'x' }],
    ['between siblings', { 'store/pg/a.ts': "import '../sqlite/b.ts'", 'store/sqlite/b.ts': 'x' }],
    ['of files that are not there', { 'model/a.ts': "import './b.ts'" }],
    ['out of src', { 'model/a.ts': "import '../../tests/b.ts'" }],
  ])('refuse imports %s', (_, tree) => {
    const [from, to] = Object.keys(tree)
    const violations = violationsOf(tree)
    expect(violations).toHaveLength(1)
    expect(violations[0]).toMatch(`${from} imports ${to ?? ''}`)
  })

  it('say the file, the import and the rule', () => {
    expect(violationsOf({ 'model/a.ts': "import '../cli/b.ts'", 'cli/b.ts': 'x' })).toEqual([
      'model/a.ts imports cli/b.ts: model may import only: nothing',
    ])
    expect(violationsOf({ 'store/pg/a.ts': "import '../sqlite/b.ts'", 'store/sqlite/b.ts': 'x' })).toEqual([
      'store/pg/a.ts imports store/sqlite/b.ts: store/sqlite is private to store',
    ])
  })

  it('refuse circles between files, of types too', () => {
    expect(
      violationsOf({
        'model/a.ts': "import type { b } from './b.ts'\nexport const a = 1",
        'model/b.ts': "import { c } from './c.ts'\nexport const b = c",
        'model/c.ts': "import { a } from './a.ts'\nexport const c = a",
      }),
    ).toEqual(['model/a.ts → model/b.ts → model/c.ts → model/a.ts: files import in a circle'])
  })

  it('refuse node modules in the client, directly and through what it imports', () => {
    expect(
      violationsOf({
        'client/client.ts': "import { read } from '../model/a.ts'\nexport const client = read",
        'model/a.ts': "import { readFileSync } from 'node:fs'\nexport const read = readFileSync",
      }),
    ).toEqual(['client/client.ts → model/a.ts imports node:fs: must run in a browser'])
  })

  it('refuse default exports and files that only re-export', () => {
    expect(violationsOf({ 'model/a.ts': 'export default 1' })).toEqual(['model/a.ts: no default exports'])
    expect(
      violationsOf({
        'model/all.ts': "/** All. */\nexport * from './a.ts'\nexport type { B } from './b.ts'\n",
        'model/a.ts': 'export const a = 1',
        'model/b.ts': 'export type B = 1',
      }),
    ).toEqual(['model/all.ts: only re-exports; import from the source'])
  })

  it('take no import from a comment', () => {
    expect(violationsOf({ 'model/a.ts': "// import('../cli/b.ts')\n/** import '../cli/b.ts' */\n" })).toEqual(
      [],
    )
  })
})
