import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { configJsonSchema } from '../../src/config/config.ts'
import { describes, keysOf, type Node } from './schema-keys.ts'

describe('orc.schema.json', () => {
  it('matches the output of scripts/write-schema.ts', () => {
    const committed = readFileSync(new URL('../../orc.schema.json', import.meta.url), 'utf8')
    expect(committed, 'run: node scripts/write-schema.ts').toBe(
      `${JSON.stringify(configJsonSchema(), null, 2)}\n`,
    )
  })

  it('describes every key, for editors to show', () => {
    const keys = keysOf(configJsonSchema() as Node)
    expect(keys.length).toBeGreaterThan(40)
    expect(keys.filter(([, node]) => !describes(node)).map(([path]) => path)).toEqual([])
  })

  it('closes every map but the runtime settings, so that editors flag a misspelt key', () => {
    const root = configJsonSchema() as Node
    const open = [['', root] as [string, Node], ...keysOf(root)]
      .flatMap(([path, node]) => [node, ...(node.anyOf ?? [])].map((form): [string, Node] => [path, form]))
      .filter(([, form]) => form.properties !== undefined && form.additionalProperties !== false)
    expect(open).toEqual([])
  })

  it('uses only patterns that a plain regular expression engine supports', () => {
    const patterns = [...JSON.stringify(configJsonSchema()).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)]
    expect(patterns.length).toBeGreaterThan(5)
    for (const [, pattern] of patterns) {
      const source = JSON.parse(pattern!) as string
      expect(source).not.toMatch(/\\[pP]\{|\(\?<[=!]/)
      expect(() => new RegExp(source)).not.toThrow()
    }
  })
})
