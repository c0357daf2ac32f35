import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const web = join(import.meta.dirname, '../../web')
const files = globSync('src/**/*.{ts,tsx,css}', { cwd: web })
const read = (file: string) => readFileSync(join(web, file), 'utf8')

describe('the sources of the control room', () => {
  it('import only the client and the contract of the service', () => {
    expect(files.length).toBeGreaterThan(20)
    for (const file of files) {
      const outside = [...read(file).matchAll(/from '((?:\.\.\/)+src\/[^']+)'/g)].map(([, path]) =>
        path!.replace(/^(\.\.\/)+/, ''),
      )
      for (const path of outside)
        expect(['src/client/client.ts', 'src/api/contract.ts'], file).toContain(path)
      expect(read(file), file).not.toMatch(/^import \{(?![^}]*type )[^}]*\} from '[./]*src\/api/m)
    }
  })

  it('keep the views of a feature in a folder named as its room in src', () => {
    const rooms = readdirSync(join(web, '../src'))
    for (const folder of readdirSync(join(web, 'src/views'))) expect(rooms).toContain(folder)
  })

  it('read the service only by the table of queries, which has one loader for each key', () => {
    for (const file of files.filter((path) => !/data\/(service|queries)\.ts$/.test(path)))
      expect(read(file), file).not.toMatch(
        /\buse(?:Suspense|Infinite)?Quer(?:y|ies)\(|\b(?:queryKey|queryFn)\b/,
      )
  })

  it('never create HTML from a string', () => {
    for (const file of files) {
      expect(read(file), file).not.toMatch(
        /dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|eval\(/,
      )
    }
  })

  it('load nothing from other sites', () => {
    for (const file of [...files, 'index.html'])
      expect(read(file), file).not.toMatch(/https?:\/\/(?!www\.w3\.org)/)
  })
})
